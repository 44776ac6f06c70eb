// Kernels of the losses, so that the CPU need not wait for the network's outputs. Like the other kernels they always give the same numbers.

// Half the squared error, or the Huber loss if `bound` is not negative. `slope` receives the derivative.
__device__ __forceinline__ float huber(float bound, float error, float &slope) {
    float size = fabsf(error);
    bool is_far = bound >= 0.0f && size > bound;
    slope = is_far ? copysignf(bound, error) : error;
    return is_far ? bound * (size - 0.5f * bound) : 0.5f * error * error;
}

// Writes the sum of each block to `parts`.
KERNEL regression(int n, float delta, const float *x, const float *target, const float *weights, float *out,
                                      double *parts) {
    double sum = 0.0;
    for (int k = here(); k < n; k += gridDim.x * blockDim.x) {
        float slope, loss = huber(delta, x[k] - target[k], slope);
        sum += (double)(loss * weights[k]);
        out[k] = slope * weights[k];
    }
    sum = block_sum(sum);
    if (threadIdx.x == 0) parts[blockIdx.x] = sum;
}

// ---- Selection of rows without replacement: one warp per sample.

__device__ __forceinline__ double warp_total(double value) {
    for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(0xffffffffu, value, step);
    return value;
}

// Rows of a sample, from `begin` on; the counts of all rows but the first (that of row r at r - 1); and the picked rows.
struct SelectedRows {
    int begin, rows, turns;
    const u32 *counts, *picked;
};

// `lists` holds the first row of each sample, its first pick, the picked rows of all samples, and the counts of all rows but each sample's first.
__device__ __forceinline__ SelectedRows picks_of(int sample, int samples, int picks, const u32 *lists) {
    const u32 *starts = lists + sample, *turns = starts + samples + 1, *picked = lists + 2 * (samples + 1);
    SelectedRows own;
    own.begin = starts[0];
    own.rows = starts[1] - starts[0];
    own.turns = turns[1] - turns[0];
    own.picked = picked + turns[0];
    own.counts = picked + picks + own.begin - sample;
    return own;
}

// Greatest Q-value of all rows that can be picked: all but the first and those without items.
__device__ __forceinline__ float greatest_pick(int rows, const u32 *counts, const float *q) {
    float most = -1e30f;
    for (int r = 1 + threadIdx.x % 32; r < rows; r += 32)
        if (counts[r - 1] > 0) most = fmaxf(most, q[r]);
    return warp_greatest(most);
}

// Difference to the greatest Q-value. Rows without items can be above it; they count as equal, so that 0 times their power is 0.
__device__ __forceinline__ float below(float q, float most) { return fminf(q - most, 0.0f); }

// Number of items of a row that are left at a turn.
__device__ __forceinline__ double left_of(u32 count, int row, const u32 *picked, int turn) {
    int left = count;
    for (int k = 0; k < turn; k++) left -= picked[k] == row;
    return max(left, 0);
}

// Log-likelihood of a selection; entropy of its first pick; and for the entropy's gradient the mean of q - most, the sum of the exponentials, and the
// greatest Q-value.
struct Likelihood {
    double log, entropy, mean, total;
    float most;
};

// Likelihood in double precision. Writes the gradient of the log-likelihood to `by_q`.
__device__ Likelihood likelihood(const SelectedRows &own, const float *q, float *by_q) {
    int lane = threadIdx.x % 32;
    float most = greatest_pick(own.rows, own.counts, q);
    Likelihood now = {0.0, 0.0, 0.0, 1.0, most};
    if (lane == 0) by_q[0] = 0.0f;
    for (int r = 1 + lane; r < own.rows; r += 32) by_q[r] = 0.0f;
    for (int turn = 0; turn < own.turns; turn++) {
        double total = 0.0, weighted = 0.0;
        for (int r = 1 + lane; r < own.rows; r += 32) {
            double above = below(q[r], most), part = left_of(own.counts[r - 1], r, own.picked, turn) * exp(above);
            total += part;
            weighted += part * above;
        }
        total = fmax(warp_total(total), 2.2250738585072014e-308);
        if (turn == 0) {
            now.mean = warp_total(weighted) / total;
            now.entropy = log(total) - now.mean;
            now.total = total;
        }
        int row = own.picked[turn];
        double left = fmax(left_of(own.counts[row - 1], row, own.picked, turn), 1.0);
        now.log += (double)(q[row] - most) + log(left) - log(total);
        for (int r = 1 + lane; r < own.rows; r += 32) {
            double part = left_of(own.counts[r - 1], r, own.picked, turn) * exp((double)below(q[r], most));
            by_q[r] += (r == row ? 1.0f : 0.0f) - (float)(part / total);
        }
    }
    // The caller may assign rows to lanes in another way.
    __syncwarp();
    return now;
}

// A choice: log-likelihood under the policy that made it, advantage, and target of the state value.
struct PolicySample {
    float log, advantage, worth;
};

// Writes the loss of each sample to `losses`.
KERNEL policy_loss(int samples, int picks, const u32 *lists, const PolicySample *made, float clip, float entropy_weight,
                                       float value_weight, float share, const float *q, const float *value, float *by_q,
                                       float *by_value, double *losses) {
    int sample = here() / 32, lane = threadIdx.x % 32;
    if (sample >= samples) return;
    SelectedRows own = picks_of(sample, samples, picks, lists);
    q += own.begin;
    by_q += own.begin;
    Likelihood now = likelihood(own, q, by_q);
    PolicySample then = made[sample];
    double advantage = then.advantage, ratio = exp(fmin(fmax(now.log - then.log, -20.0), 20.0));
    double clipped = fmin(fmax(ratio, 1.0 - clip), 1.0 + clip);
    double slope = ratio * advantage <= clipped * advantage ? -ratio * advantage : 0.0;
    double gain = fmin(ratio * advantage, clipped * advantage), error = (double)value[sample] - then.worth;
    for (int r = 1 + lane; r < own.rows; r += 32) {
        double above = below(q[r], now.most), by_entropy = 0.0;
        if (own.turns > 0) by_entropy = -(double)own.counts[r - 1] * exp(above) / now.total * (above - now.mean);
        by_q[r] = share * (slope * by_q[r] - entropy_weight * by_entropy);
    }
    if (lane > 0) return;
    by_value[sample] = share * value_weight * error;
    losses[sample] = share * (-gain - entropy_weight * now.entropy + value_weight * 0.5 * error * error);
}

// Exchange of one row for another: the row that comes in, the row that goes out, and the gain.
struct Exchange {
    u32 inward, outward;
    float gain;
};

// Cross-entropy of the picked rows and logistic loss of the exchanges; sample s has the exchanges from starts[s] on. Writes the loss of each sample to
// `losses`.
KERNEL imitation_loss(int samples, int picks, const u32 *lists, const u32 *starts, const Exchange *exchanges,
                                          float share, float gain_share, const float *q, float *by_q, double *losses) {
    int sample = here() / 32, lane = threadIdx.x % 32;
    if (sample >= samples) return;
    SelectedRows own = picks_of(sample, samples, picks, lists);
    q += own.begin;
    by_q += own.begin;
    float most = greatest_pick(own.rows, own.counts, q), sum = 0.0f;
    for (int r = 1 + lane; r < own.rows; r += 32) sum += expf(below(q[r], most)) * own.counts[r - 1];
    float total = warp_sum(sum), log_total = logf(total), each = share / own.turns;
    double loss = 0.0;
    for (int k = lane; k < own.turns; k += 32) loss -= (double)(each * (q[own.picked[k]] - most - log_total));
    int first = starts[sample], end = starts[sample + 1];
    for (int k = first + lane; k < end; k += 32) {
        Exchange exchange = exchanges[k];
        float margin = (q[exchange.inward] - q[exchange.outward]) * copysignf(1.0f, exchange.gain);
        loss += (double)(fabsf(exchange.gain) * gain_share) * log1p(exp(-(double)margin));
    }
    loss = warp_total(loss);
    for (int r = lane; r < own.rows; r += 32) {
        float by = 0.0f;
        if (r > 0) by = expf(below(q[r], most)) * own.counts[r - 1] * (share / total);
        for (int k = 0; k < own.turns; k++)
            if (own.picked[k] == r) by -= each;
        for (int k = first; k < end; k++) {
            Exchange exchange = exchanges[k];
            if (exchange.inward != r && exchange.outward != r) continue;
            float margin = (q[exchange.inward] - q[exchange.outward]) * copysignf(1.0f, exchange.gain);
            float slope = -exchange.gain * gain_share * sigmoid(-margin);
            if (exchange.inward == r) by += slope;
            if (exchange.outward == r) by -= slope;
        }
        by_q[r] = by;
    }
    if (lane == 0) losses[sample] = loss;
}

// ---- Q-values of selections: V, or the first row's Q-value, plus the advantage of each picked row over the first.

// n-step return: number of rows that can be selected in the later state, discounted sum of rewards, and discount of the later state.
struct NStepReturn {
    u32 places;
    float reward, discount;
};

// Sort key of a row: greater for greater values, and of equal values greater for the earlier row.
__device__ __forceinline__ unsigned long long order_of(float value, int row) {
    u32 bits = __float_as_uint(value);
    bits ^= bits >> 31 ? 0xffffffffu : 0x80000000u;
    return (unsigned long long)bits << 32 | (0xffffffffu - row);
}

// `lists` holds the first row of each sample and the counts of all rows but each sample's first. Picks the best rows by `chooser` one after the other, and
// writes the reward plus their discounted Q-value, by `q` and `value`, to `out`.
KERNEL bootstrap_targets(int samples, const u32 *lists, const NStepReturn *ways, int is_dueling, int may_idle,
                                       const float *chooser, const float *q, const float *value, float *out) {
    int sample = here() / 32, lane = threadIdx.x % 32;
    if (sample >= samples) return;
    int begin = lists[sample], rows = lists[sample + 1] - begin;
    const u32 *counts = lists + samples + 1 + begin - sample;
    chooser += begin;
    q += begin;
    NStepReturn way = ways[sample];
    float threshold = may_idle ? chooser[0] : -__int_as_float(0x7f800000), above = 0.0f;
    unsigned long long last = ~0ull;
    for (u32 places = way.places; places > 0;) {
        unsigned long long best = 0;
        for (int r = 1 + lane; r < rows; r += 32) {
            if (!(chooser[r] >= threshold)) continue;
            unsigned long long order = order_of(chooser[r], r);
            if (order < last && order > best) best = order;
        }
        for (int step = 16; step > 0; step /= 2) {
            unsigned long long other = __shfl_xor_sync(0xffffffffu, best, step);
            if (other > best) best = other;
        }
        if (best == 0) break;
        last = best;
        int row = 0xffffffffu - (u32)best;
        u32 taken = min(places, counts[row - 1]);
        for (u32 k = 0; k < taken; k++) above += q[row] - q[0];
        places -= taken;
    }
    if (lane == 0) out[sample] = way.reward + way.discount * ((is_dueling ? value[sample] : q[0]) + above);
}

// Writes the loss of each sample's Q-value against its target to `losses`, and its temporal-difference error to `errors`.
KERNEL q_value_loss(int samples, int picks, const u32 *lists, const float *weights, int is_dueling, float bound,
                                      float likelihood_weight, const float *q, const float *value, const float *target,
                                      float *by_q, float *by_value, float *errors, double *losses) {
    int sample = here() / 32, lane = threadIdx.x % 32;
    if (sample >= samples) return;
    SelectedRows own = picks_of(sample, samples, picks, lists);
    q += own.begin;
    by_q += own.begin;
    float above = 0.0f, weight = weights[sample], slope;
    for (int k = 0; k < own.turns; k++) above += q[own.picked[k]] - q[0];
    float error = (is_dueling ? value[sample] : q[0]) + above - target[sample];
    float loss = huber(bound, error, slope) * weight, factor = 0.0f;
    slope *= weight;
    double log_now = 0.0;
    if (likelihood_weight > 0.0f) {
        factor = likelihood_weight * weight;
        log_now = likelihood(own, q, by_q).log;
    }
    for (int r = lane; r < own.rows; r += 32) {
        float by = r == 0 && !is_dueling ? slope : 0.0f;
        for (int k = 0; k < own.turns; k++) {
            if (r == 0) by -= slope;
            else if (own.picked[k] == r) by += slope;
        }
        if (factor > 0.0f) by -= factor * by_q[r];
        by_q[r] = by;
    }
    if (lane > 0) return;
    by_value[sample] = is_dueling ? slope : 0.0f;
    errors[sample] = error;
    losses[sample] = (double)loss - log_now * factor;
}

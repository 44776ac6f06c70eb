// Losses: what the processor would otherwise have to wait for. Like the other kernels, the same numbers each time.

// Half the square of an error, or Huber's loss where `bound` is not negative; `slope` gets its slope.
__device__ __forceinline__ float huber(float bound, float error, float &slope) {
    float size = fabsf(error);
    bool is_far = bound >= 0.0f && size > bound;
    slope = is_far ? copysignf(bound, error) : error;
    return is_far ? bound * (size - 0.5f * bound) : 0.5f * error * error;
}

// The sum of each block goes to `parts`.
extern "C" __global__ void regression(int n, float delta, const float *x, const float *target, const float *weights, float *out,
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

// ---- Rows picked one after the other without putting any back, a warp for each sample.

__device__ __forceinline__ double warp_total(double value) {
    for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(0xffffffffu, value, step);
    return value;
}

// A sample's rows, from `begin` on, how many equal ones each but the first stands for (row r at r - 1), and the rows picked.
struct SelectedRows {
    int begin, rows, turns;
    const u32 *counts, *picked;
};

// `lists` has where each sample's rows start, where its picks do, the picks, and the counts of all rows but each sample's first.
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

// The greatest number of all rows but the first.
__device__ __forceinline__ float greatest_pick(int rows, const float *q) {
    float most = -1e30f;
    for (int r = 1 + threadIdx.x % 32; r < rows; r += 32) most = fmaxf(most, q[r]);
    return warp_greatest(most);
}

// How many of a row are left at a turn.
__device__ __forceinline__ double left_of(u32 count, int row, const u32 *picked, int turn) {
    int left = count;
    for (int k = 0; k < turn; k++) left -= picked[k] == row;
    return max(left, 0);
}

// A choice's likelihood; the entropy of its first pick, with the mean of what rows are above the greatest and the sum of their powers.
struct Likelihood {
    double log, entropy, mean, total;
    float most;
};

// In double precision. Writes the gradient of the likelihood's logarithm.
__device__ Likelihood likelihood(const SelectedRows &own, const float *q, float *by_q) {
    int lane = threadIdx.x % 32;
    float most = greatest_pick(own.rows, q);
    Likelihood now = {0.0, 0.0, 0.0, 1.0, most};
    if (lane == 0) by_q[0] = 0.0f;
    for (int r = 1 + lane; r < own.rows; r += 32) by_q[r] = 0.0f;
    for (int turn = 0; turn < own.turns; turn++) {
        double total = 0.0, weighted = 0.0;
        for (int r = 1 + lane; r < own.rows; r += 32) {
            double above = q[r] - most, part = left_of(own.counts[r - 1], r, own.picked, turn) * exp(above);
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
            double part = left_of(own.counts[r - 1], r, own.picked, turn) * exp((double)(q[r] - most));
            by_q[r] += (r == row ? 1.0f : 0.0f) - (float)(part / total);
        }
    }
    // Whoever comes next may have the rows divided otherwise.
    __syncwarp();
    return now;
}

// What is known of a choice: its likelihood's logarithm when it was made, its advantage, and what the value should have been.
struct PolicySample {
    float log, advantage, worth;
};

// The loss of each sample goes to `losses`.
extern "C" __global__ void policy_loss(int samples, int picks, const u32 *lists, const PolicySample *made, float clip, float entropy_weight,
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
        double above = q[r] - now.most, by_entropy = 0.0;
        if (own.turns > 0) by_entropy = -(double)own.counts[r - 1] * exp(above) / now.total * (above - now.mean);
        by_q[r] = share * (slope * by_q[r] - entropy_weight * by_entropy);
    }
    if (lane > 0) return;
    by_value[sample] = share * value_weight * error;
    losses[sample] = share * (-gain - entropy_weight * now.entropy + value_weight * 0.5 * error * error);
}

// The row that comes in, the row that goes out, and what is gained by it.
struct Exchange {
    u32 inward, outward;
    float gain;
};

// The cross-entropy of one pick against any of those made, and the logistic loss of exchanges; sample s has those from starts[s] on. The loss of each
// sample goes to `losses`.
extern "C" __global__ void imitation_loss(int samples, int picks, const u32 *lists, const u32 *starts, const Exchange *exchanges,
                                          float share, float gain_share, const float *q, float *by_q, double *losses) {
    int sample = here() / 32, lane = threadIdx.x % 32;
    if (sample >= samples) return;
    SelectedRows own = picks_of(sample, samples, picks, lists);
    q += own.begin;
    by_q += own.begin;
    float most = greatest_pick(own.rows, q), sum = 0.0f;
    for (int r = 1 + lane; r < own.rows; r += 32) sum += expf(q[r] - most) * own.counts[r - 1];
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
        if (r > 0) by = expf(q[r] - most) * own.counts[r - 1] * (share / total);
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

// ---- Values of picks: V, or the first row's number, and what each row picked is above that number.

// The way to a later state: how many rows can be picked there, what was earned, and the discount.
struct NStepReturn {
    u32 places;
    float reward, discount;
};

// A number's place in an order of all, greater ones later; of equal ones the later row comes first.
__device__ __forceinline__ unsigned long long order_of(float value, int row) {
    u32 bits = __float_as_uint(value);
    bits ^= bits >> 31 ? 0xffffffffu : 0x80000000u;
    return (unsigned long long)bits << 32 | (0xffffffffu - row);
}

// `lists` has where each sample's rows start and the counts of all rows but each sample's first. The best rows by `chooser` are picked one after the
// other; what they are worth by `q` and `value` goes to `out`, discounted and with the reward.
extern "C" __global__ void bootstrap_targets(int samples, const u32 *lists, const NStepReturn *ways, int is_dueling, int may_idle,
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

// The loss of each sample's value against its target goes to `losses`, by how much it is too great to `errors`.
extern "C" __global__ void q_value_loss(int samples, int picks, const u32 *lists, const float *weights, int is_dueling, float bound,
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

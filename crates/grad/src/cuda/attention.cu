// Softmax attention within each sample. Of long samples a block has 32 queries (or keys) of one head, 4 for each of its 8 warps, and loads the keys (or
// queries) into shared memory 32 at a time. A head's columns are padded to W there, so that the inner loops have constant lengths.

#define TILE 32
#define EACH 4
#define THREADS 256

// One head of one sample: the first row and the number of its queries and keys, its first column, and the place of its attention weights.
struct Part {
    int query, queries, key, keys, first;
    size_t weights;
};

// `layout` holds the first query of each sample, the first key of each sample, and the running sum of queries × keys.
__device__ Part part_of(int sample, int head, int samples, const u32 *layout, int heads, int size) {
    const u32 *q = layout + sample, *k = q + samples + 1, *offset = k + samples + 1;
    Part part;
    part.query = q[0];
    part.queries = q[1] - q[0];
    part.key = k[0];
    part.keys = k[1] - k[0];
    part.first = head * size;
    part.weights = (size_t)offset[0] * heads + (size_t)head * part.queries * part.keys;
    return part;
}

// Distance of rows in shared memory: the padded columns plus four, which keep the lanes' rows in different banks.
template <int W> __device__ constexpr int stride() { return W + 4; }

// Columns of a lane: every 32nd. If there are 16 columns, two lanes share one, and each of them adds up every other part.
template <int W> __device__ constexpr int each() { return W < 32 ? 1 : W / 32; }
template <int W> __device__ constexpr int sharing() { return W < 32 ? 32 / W : 1; }
template <int W> __device__ __forceinline__ int column_of_lane() { return threadIdx.x % (W < 32 ? W : 32); }
template <int W> __device__ __forceinline__ int part_of_lane() { return threadIdx.x % 32 / (32 / sharing<W>()); }
template <int W> __device__ __forceinline__ float together(float sum) {
    return W < 32 ? sum + __shfl_xor_sync(0xffffffffu, sum, 16) : sum;
}

// Loads a head's columns of up to 32 rows into shared memory, padded with zeros.
template <int W>
__device__ void load(float *to, const float *data, int row, int count, int columns, int first, int size) {
    for (int k = threadIdx.x; k < TILE * W; k += THREADS) {
        int r = k / W, c = k % W;
        to[r * stride<W>() + c] = r < count && c < size ? data[(size_t)(row + r) * columns + first + c] : 0.0f;
    }
}

// Dot products of the warp's own rows with the lane's row.
template <int W> __device__ void dots(const float *own, const float *others, float sums[EACH]) {
    const float4 *other = (const float4 *)(others + threadIdx.x % 32 * stride<W>());
    for (int e = 0; e < EACH; e++) sums[e] = 0.0f;
#pragma unroll
    for (int c = 0; c < W / 4; c++) {
        float4 b = other[c];
#pragma unroll
        for (int e = 0; e < EACH; e++) {
            float4 a = ((const float4 *)(own + e * stride<W>()))[c];
            sums[e] += a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w;
        }
    }
}

// For each of the warp's own rows, adds the rows in shared memory, each times its factor in the tile.
template <int W> __device__ void mix(const float *tile, const float *rows, float sums[EACH][each<W>()]) {
#pragma unroll 2
    for (int j = 4 * part_of_lane<W>(); j < TILE; j += 4 * sharing<W>()) {
        float4 shares[EACH];
#pragma unroll
        for (int e = 0; e < EACH; e++) shares[e] = *(const float4 *)(tile + e * TILE + j);
#pragma unroll
        for (int r = 0; r < each<W>(); r++) {
            const float *row = rows + j * stride<W>() + 32 * r + column_of_lane<W>();
            float x = row[0], y = row[stride<W>()], z = row[2 * stride<W>()], w = row[3 * stride<W>()];
#pragma unroll
            for (int e = 0; e < EACH; e++)
                sums[e][r] += shares[e].x * x + shares[e].y * y + shares[e].z * z + shares[e].w * w;
        }
    }
}

// The same with a transposed tile: one column for each of the warp's own rows.
template <int W> __device__ void mix_columns(const float *tile, const float *rows, float sums[EACH][each<W>()]) {
#pragma unroll 4
    for (int i = part_of_lane<W>(); i < TILE; i += sharing<W>()) {
        float4 share = *(const float4 *)(tile + i * TILE);
#pragma unroll
        for (int r = 0; r < each<W>(); r++) {
            float value = rows[i * stride<W>() + 32 * r + column_of_lane<W>()];
            sums[0][r] += share.x * value;
            sums[1][r] += share.y * value;
            sums[2][r] += share.z * value;
            sums[3][r] += share.w * value;
        }
    }
}

template <int W>
__device__ void forward(Part part, int begin, int columns, int size, float scale, const float *q, const float *k, const float *v,
                        const float *bias, float *weights, float *out) {
    extern __shared__ float4 shared[];
    float *queries = (float *)shared, *rows = queries + TILE * stride<W>(), *tile = rows + TILE * stride<W>();
    int lane = threadIdx.x % 32, own = threadIdx.x / 32 * EACH;
    load<W>(queries, q, part.query + begin, part.queries - begin, columns, part.first, size);
    int here = max(0, min(EACH, part.queries - begin - own));
    float *mine = weights + part.weights + (size_t)(begin + own) * part.keys;
    float most[EACH], factor[EACH], mixed[EACH][each<W>()];
    for (int e = 0; e < EACH; e++) most[e] = -1e30f;
    for (int start = 0; start < part.keys; start += TILE) {
        __syncthreads();
        load<W>(rows, k, part.key + start, part.keys - start, columns, part.first, size);
        __syncthreads();
        float sums[EACH];
        dots<W>(queries + own * stride<W>(), rows, sums);
        int j = start + lane;
        if (j >= part.keys) continue;
        float added = bias ? bias[part.key + j] : 0.0f;
#pragma unroll
        for (int e = 0; e < EACH; e++) {
            float logit = sums[e] * scale + added;
            most[e] = fmaxf(most[e], logit);
            if (e < here) mine[(size_t)e * part.keys + j] = logit;
        }
    }
#pragma unroll
    for (int e = 0; e < EACH; e++) {
        most[e] = warp_greatest(most[e]);
        float sum = 0.0f;
        if (e < here) {
            for (int j = lane; j < part.keys; j += 32) {
                float y = expf(mine[(size_t)e * part.keys + j] - most[e]);
                mine[(size_t)e * part.keys + j] = y;
                sum += y;
            }
        }
        factor[e] = 1.0f / warp_sum(sum);
        for (int r = 0; r < each<W>(); r++) mixed[e][r] = 0.0f;
    }
    for (int start = 0; start < part.keys; start += TILE) {
        __syncthreads();
        load<W>(rows, v, part.key + start, part.keys - start, columns, part.first, size);
        int j = start + lane;
#pragma unroll
        for (int e = 0; e < EACH; e++) {
            float weight = 0.0f;
            if (e < here && j < part.keys) {
                weight = mine[(size_t)e * part.keys + j] * factor[e];
                mine[(size_t)e * part.keys + j] = weight;
            }
            tile[(own + e) * TILE + lane] = weight;
        }
        __syncthreads();
        mix<W>(tile + own * TILE, rows, mixed);
    }
#pragma unroll
    for (int e = 0; e < EACH; e++)
#pragma unroll
        for (int r = 0; r < each<W>(); r++) {
            float sum = together<W>(mixed[e][r]);
            if (e < here && 32 * r + lane < size)
                out[(size_t)(part.query + begin + own + e) * columns + part.first + 32 * r + lane] = sum;
        }
}

// Adds to the gradients of the queries, and writes the gradients of the logits, times the scale, to `dlogits`.
template <int W>
__device__ void backward_queries(Part part, int begin, int columns, int size, float scale, const float *k, const float *v,
                                 const float *weights, const float *dy, float *dlogits, float *dq) {
    extern __shared__ float4 shared[];
    float *changes = (float *)shared, *rows = changes + TILE * stride<W>(), *tile = rows + TILE * stride<W>();
    int lane = threadIdx.x % 32, own = threadIdx.x / 32 * EACH;
    load<W>(changes, dy, part.query + begin, part.queries - begin, columns, part.first, size);
    int here = max(0, min(EACH, part.queries - begin - own));
    size_t first = part.weights + (size_t)(begin + own) * part.keys;
    float mean[EACH], mixed[EACH][each<W>()];
    for (int e = 0; e < EACH; e++) mean[e] = 0.0f;
    for (int start = 0; start < part.keys; start += TILE) {
        __syncthreads();
        load<W>(rows, v, part.key + start, part.keys - start, columns, part.first, size);
        __syncthreads();
        float sums[EACH];
        dots<W>(changes + own * stride<W>(), rows, sums);
        int j = start + lane;
#pragma unroll
        for (int e = 0; e < EACH; e++) {
            if (e < here && j < part.keys) {
                size_t place = first + (size_t)e * part.keys + j;
                dlogits[place] = sums[e];
                mean[e] += weights[place] * sums[e];
            }
        }
    }
#pragma unroll
    for (int e = 0; e < EACH; e++) {
        mean[e] = warp_sum(mean[e]);
        for (int r = 0; r < each<W>(); r++) mixed[e][r] = 0.0f;
    }
    for (int start = 0; start < part.keys; start += TILE) {
        __syncthreads();
        load<W>(rows, k, part.key + start, part.keys - start, columns, part.first, size);
        int j = start + lane;
#pragma unroll
        for (int e = 0; e < EACH; e++) {
            float change = 0.0f;
            if (e < here && j < part.keys) {
                size_t place = first + (size_t)e * part.keys + j;
                change = weights[place] * (dlogits[place] - mean[e]) * scale;
                dlogits[place] = change;
            }
            tile[(own + e) * TILE + lane] = change;
        }
        __syncthreads();
        mix<W>(tile + own * TILE, rows, mixed);
    }
#pragma unroll
    for (int e = 0; e < EACH; e++)
#pragma unroll
        for (int r = 0; r < each<W>(); r++) {
            float sum = together<W>(mixed[e][r]);
            if (e < here && 32 * r + lane < size)
                dq[(size_t)(part.query + begin + own + e) * columns + part.first + 32 * r + lane] += sum;
        }
}

// Loads a 32 × 32 tile of a matrix with one row per query and one column per key, padded with zeros.
__device__ void load_tile(float *tile, const float *matrix, int query, int queries, int key, int keys) {
    for (int k = threadIdx.x; k < TILE * TILE; k += THREADS) {
        int i = query + k / TILE, j = key + k % TILE;
        tile[k] = i < queries && j < keys ? matrix[(size_t)i * keys + j] : 0.0f;
    }
}

// Adds to the gradients of the keys and the values.
template <int W>
__device__ void backward_keys(Part part, int begin, int columns, int size, const float *q, const float *weights, const float *dy,
                              const float *dlogits, float *dk, float *dv) {
    extern __shared__ float4 shared[];
    float *changes = (float *)shared, *queries = changes + TILE * stride<W>();
    float *shares = queries + TILE * stride<W>(), *slopes = shares + TILE * TILE;
    int lane = threadIdx.x % 32, own = threadIdx.x / 32 * EACH;
    float for_key[EACH][each<W>()], for_value[EACH][each<W>()];
#pragma unroll
    for (int e = 0; e < EACH; e++)
        for (int r = 0; r < each<W>(); r++) for_key[e][r] = for_value[e][r] = 0.0f;
    for (int start = 0; start < part.queries; start += TILE) {
        __syncthreads();
        load<W>(changes, dy, part.query + start, part.queries - start, columns, part.first, size);
        load<W>(queries, q, part.query + start, part.queries - start, columns, part.first, size);
        load_tile(shares, weights + part.weights, start, part.queries, begin, part.keys);
        load_tile(slopes, dlogits + part.weights, start, part.queries, begin, part.keys);
        __syncthreads();
        mix_columns<W>(shares + own, changes, for_value);
        mix_columns<W>(slopes + own, queries, for_key);
    }
#pragma unroll
    for (int e = 0; e < EACH; e++)
#pragma unroll
        for (int r = 0; r < each<W>(); r++) {
            float key = together<W>(for_key[e][r]), value = together<W>(for_value[e][r]);
            if (begin + own + e < part.keys && 32 * r + lane < size) {
                size_t place = (size_t)(part.key + begin + own + e) * columns + part.first + 32 * r + lane;
                dk[place] += key;
                dv[place] += value;
            }
        }
}

// Kernels for heads of up to W columns: each width has its own, which takes only the registers that it needs. Each of `tiles` is a sample and the first of up
// to 32 of its queries or keys.
#define LONG_SAMPLES(W)                                                                                                          \
    extern "C" __global__ void __launch_bounds__(THREADS) attention_##W(                                                         \
        int samples, const u32 *layout, const u32 *tiles, int heads, int columns, float scale, const float *q, const float *k,   \
        const float *v, const float *bias, float *weights, float *out) {                                                         \
        int size = columns / heads, begin = tiles[2 * blockIdx.x + 1];                                                           \
        Part part = part_of(tiles[2 * blockIdx.x], blockIdx.y, samples, layout, heads, size);                                    \
        forward<W>(part, begin, columns, size, scale, q, k, v, bias, weights, out);                                              \
    }                                                                                                                            \
    extern "C" __global__ void __launch_bounds__(THREADS) attention_backward_queries_##W(                                        \
        int samples, const u32 *layout, const u32 *tiles, int heads, int columns, float scale, const float *k, const float *v,   \
        const float *weights, const float *dy, float *dlogits, float *dq) {                                                      \
        int size = columns / heads, begin = tiles[2 * blockIdx.x + 1];                                                           \
        Part part = part_of(tiles[2 * blockIdx.x], blockIdx.y, samples, layout, heads, size);                                    \
        backward_queries<W>(part, begin, columns, size, scale, k, v, weights, dy, dlogits, dq);                                  \
    }                                                                                                                            \
    extern "C" __global__ void __launch_bounds__(THREADS) attention_backward_keys_##W(                                           \
        int samples, const u32 *layout, const u32 *tiles, int heads, int columns, const float *q, const float *weights,          \
        const float *dy, const float *dlogits, float *dk, float *dv) {                                                           \
        int size = columns / heads, begin = tiles[2 * blockIdx.x + 1];                                                           \
        Part part = part_of(tiles[2 * blockIdx.x], blockIdx.y, samples, layout, heads, size);                                    \
        backward_keys<W>(part, begin, columns, size, q, weights, dy, dlogits, dk, dv);                                           \
    }

LONG_SAMPLES(16)
LONG_SAMPLES(32)
LONG_SAMPLES(64)
LONG_SAMPLES(128)

// ---- Short samples: at most 32 queries and keys, and heads of at most 32 columns. A warp computes one head of one sample; each lane has one key. `shorts`
// are the numbers of these samples.

// Loads a head's columns of some rows into shared memory.
__device__ void load_short(float *to, const float *data, int row, int count, int columns, int first, int size) {
    int lane = threadIdx.x % 32, stride = size | 1;
    if (lane < size)
        for (int r = 0; r < count; r++) to[r * stride + lane] = data[(size_t)(row + r) * columns + first + lane];
}

__device__ void forward_short(Part part, int columns, int size, float scale, int most_queries, int most_keys, const float *q,
                              const float *k, const float *v, const float *bias, float *weights, float *out) {
    extern __shared__ float4 shared[];
    int stride = size | 1, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    float *keys = (float *)shared + warp * (most_queries + 2 * most_keys) * stride;
    float *values = keys + most_keys * stride, *queries = values + most_keys * stride;
    load_short(keys, k, part.key, part.keys, columns, part.first, size);
    load_short(values, v, part.key, part.keys, columns, part.first, size);
    load_short(queries, q, part.query, part.queries, columns, part.first, size);
    __syncwarp();
    bool is_key = lane < part.keys;
    const float *own = keys + (is_key ? lane : 0) * stride;
    float added = bias && is_key ? bias[part.key + lane] : 0.0f;
    for (int i = 0; i < part.queries; i++) {
        const float *query = queries + i * stride;
        float sum = 0.0f;
        for (int c = 0; c < size; c++) sum += query[c] * own[c];
        float logit = is_key ? sum * scale + added : -1e30f;
        float most = warp_greatest(logit), power = is_key ? expf(logit - most) : 0.0f;
        float weight = power / warp_sum(power), mixed = 0.0f;
        if (is_key) weights[part.weights + i * part.keys + lane] = weight;
        for (int j = 0; j < part.keys; j++) {
            float share = __shfl_sync(0xffffffffu, weight, j);
            if (lane < size) mixed += share * values[j * stride + lane];
        }
        if (lane < size) out[(size_t)(part.query + i) * columns + part.first + lane] = mixed;
    }
}

// Adds to the gradients of queries, keys and values. S is at least the head's width.
template <int S>
__device__ void backward_short(Part part, int columns, int size, float scale, int most_queries, int most_keys, const float *q,
                               const float *k, const float *v, const float *weights, const float *dy, float *dq, float *dk,
                               float *dv) {
    extern __shared__ float4 shared[];
    int stride = size | 1, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    float *keys = (float *)shared + warp * 2 * (most_queries + most_keys) * stride;
    float *values = keys + most_keys * stride, *queries = values + most_keys * stride;
    float *changes = queries + most_queries * stride;
    load_short(keys, k, part.key, part.keys, columns, part.first, size);
    load_short(values, v, part.key, part.keys, columns, part.first, size);
    load_short(queries, q, part.query, part.queries, columns, part.first, size);
    load_short(changes, dy, part.query, part.queries, columns, part.first, size);
    __syncwarp();
    bool is_key = lane < part.keys;
    const float *own = values + (is_key ? lane : 0) * stride;
    float for_key[S], for_value[S];
#pragma unroll
    for (int c = 0; c < S; c++) for_key[c] = for_value[c] = 0.0f;
    for (int i = 0; i < part.queries; i++) {
        const float *query = queries + i * stride, *change = changes + i * stride;
        float weight = is_key ? weights[part.weights + i * part.keys + lane] : 0.0f, sum = 0.0f;
        for (int c = 0; c < size; c++) sum += change[c] * own[c];
        float slope = weight * (sum - warp_sum(weight * sum)) * scale, mixed = 0.0f;
        for (int j = 0; j < part.keys; j++) {
            float share = __shfl_sync(0xffffffffu, slope, j);
            if (lane < size) mixed += share * keys[j * stride + lane];
        }
        if (lane < size) dq[(size_t)(part.query + i) * columns + part.first + lane] += mixed;
#pragma unroll
        for (int c = 0; c < S; c++) {
            if (c < size) {
                for_key[c] += slope * query[c];
                for_value[c] += weight * change[c];
            }
        }
    }
    // Transpose through shared memory, so that the lanes write a row together.
    __syncwarp();
    if (is_key) {
#pragma unroll
        for (int c = 0; c < S; c++) {
            if (c < size) {
                keys[lane * stride + c] = for_key[c];
                values[lane * stride + c] = for_value[c];
            }
        }
    }
    __syncwarp();
    if (lane < size) {
        for (int j = 0; j < part.keys; j++) {
            size_t place = (size_t)(part.key + j) * columns + part.first + lane;
            dk[place] += keys[j * stride + lane];
            dv[place] += values[j * stride + lane];
        }
    }
}

extern "C" __global__ void attention_short(int samples, const u32 *layout, const u32 *shorts, int count, int heads, int columns, float scale, int most_queries,
                                           int most_keys, const float *q, const float *k, const float *v, const float *bias,
                                           float *weights, float *out) {
    int size = columns / heads, number = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
    if (number >= count * heads) return;
    Part part = part_of(shorts[number / heads], number % heads, samples, layout, heads, size);
    forward_short(part, columns, size, scale, most_queries, most_keys, q, k, v, bias, weights, out);
}

extern "C" __global__ void attention_short_backward(int samples, const u32 *layout, const u32 *shorts, int count, int heads, int columns, float scale,
                                                    int most_queries, int most_keys, const float *q, const float *k,
                                                    const float *v, const float *weights, const float *dy, float *dq, float *dk,
                                                    float *dv) {
    int size = columns / heads, number = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
    if (number >= count * heads) return;
    Part part = part_of(shorts[number / heads], number % heads, samples, layout, heads, size);
    if (size <= 16)
        backward_short<16>(part, columns, size, scale, most_queries, most_keys, q, k, v, weights, dy, dq, dk, dv);
    else backward_short<32>(part, columns, size, scale, most_queries, most_keys, q, k, v, weights, dy, dq, dk, dv);
}

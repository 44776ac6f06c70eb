// Softmax attention within each sample.
//
// Narrow heads, of at most 32 columns: a warp has 8 queries (or keys) of one sample and up to 4 heads, a thread one head of one of them with all its columns in
// registers. Keys (or queries) are read one after the other; the 8 threads of a head read the same, so that the cache serves them at once. The forward pass
// keeps the logarithm of the sum of powers of each query and head, from which the backward pass computes the weights again.
//
// Wide heads: a block has 32 queries (or keys) of one head, 4 for each of its 8 warps, and loads the keys (or queries) into shared memory 32 at a time. A head's
// columns are padded to W there, so that the inner loops have constant lengths. The forward pass keeps the weights.

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

// Columns of a lane: every 32nd.
template <int W> __device__ constexpr int each() { return W / 32; }

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
    for (int j = 0; j < TILE; j += 4) {
        float4 shares[EACH];
#pragma unroll
        for (int e = 0; e < EACH; e++) shares[e] = *(const float4 *)(tile + e * TILE + j);
#pragma unroll
        for (int r = 0; r < each<W>(); r++) {
            const float *row = rows + j * stride<W>() + 32 * r + threadIdx.x % 32;
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
    for (int i = 0; i < TILE; i++) {
        float4 share = *(const float4 *)(tile + i * TILE);
#pragma unroll
        for (int r = 0; r < each<W>(); r++) {
            float value = rows[i * stride<W>() + 32 * r + threadIdx.x % 32];
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
            float sum = mixed[e][r];
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
            float sum = mixed[e][r];
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
            float key = for_key[e][r], value = for_value[e][r];
            if (begin + own + e < part.keys && 32 * r + lane < size) {
                size_t place = (size_t)(part.key + begin + own + e) * columns + part.first + 32 * r + lane;
                dk[place] += key;
                dv[place] += value;
            }
        }
}

// Kernels for heads of up to W columns: each width has its own, which takes only the registers that it needs. Each of `tiles` is a sample and the first of up
// to 32 of its queries or keys.
#define WIDE_HEADS(W)                                                                                                         \
    BOUNDED(THREADS) attention_##W(                                                                                           \
        int samples, const u32 *layout, const u32 *tiles, int heads, int columns, float scale, const float *q, const float *k, \
        const float *v, const float *bias, float *weights, float *out) {                                                      \
        int size = columns / heads, begin = tiles[2 * blockIdx.x + 1];                                                        \
        Part part = part_of(tiles[2 * blockIdx.x], blockIdx.y, samples, layout, heads, size);                                 \
        forward<W>(part, begin, columns, size, scale, q, k, v, bias, weights, out);                                           \
    }                                                                                                                         \
    BOUNDED(THREADS) attention_backward_queries_##W(                                                                          \
        int samples, const u32 *layout, const u32 *tiles, int heads, int columns, float scale, const float *k, const float *v, \
        const float *weights, const float *dy, float *dlogits, float *dq) {                                                   \
        int size = columns / heads, begin = tiles[2 * blockIdx.x + 1];                                                        \
        Part part = part_of(tiles[2 * blockIdx.x], blockIdx.y, samples, layout, heads, size);                                 \
        backward_queries<W>(part, begin, columns, size, scale, k, v, weights, dy, dlogits, dq);                               \
    }                                                                                                                         \
    BOUNDED(THREADS) attention_backward_keys_##W(                                                                             \
        int samples, const u32 *layout, const u32 *tiles, int heads, int columns, const float *q, const float *weights,       \
        const float *dy, const float *dlogits, float *dk, float *dv) {                                                        \
        int size = columns / heads, begin = tiles[2 * blockIdx.x + 1];                                                        \
        Part part = part_of(tiles[2 * blockIdx.x], blockIdx.y, samples, layout, heads, size);                                 \
        backward_keys<W>(part, begin, columns, size, q, weights, dy, dlogits, dk, dv);                                        \
    }

WIDE_HEADS(64)
WIDE_HEADS(128)

// ---- Narrow heads.

// Rows of a warp, and heads that it computes at once.
#define ROWS 8
#define HEADS 4

// One head of one query or key: its place among the rows of its sample, and whether there is one. A thread without one computes the last one again and writes
// nothing, which keeps the warp together.
struct Own {
    Part part;
    int row, head;
    bool is_there;
};

// `tiles` are `count` pairs of a sample and the first of up to 8 of its queries or keys.
__device__ bool find(Own *own, int samples, const u32 *layout, const u32 *tiles, int count, int heads, int columns, bool is_key) {
    int groups = (heads + HEADS - 1) / HEADS, warp = here() / 32, lane = threadIdx.x % 32;
    int tile = warp / groups, head = warp % groups * HEADS + lane / ROWS;
    if (tile >= count) return false;
    own->head = min(head, heads - 1);
    own->part = part_of(tiles[2 * tile], own->head, samples, layout, heads, columns / heads);
    int row = tiles[2 * tile + 1] + lane % ROWS, rows = is_key ? own->part.keys : own->part.queries;
    own->row = min(row, rows - 1);
    own->is_there = row < rows && head < heads;
    return true;
}

// Reads the columns of a head, padded with zeros. The columns of a whole head are aligned.
template <int W> __device__ __forceinline__ void read(float to[W], const float *from, int size) {
    if (size == W) {
#pragma unroll
        for (int c = 0; c < W; c += 4) {
            float4 four = *(const float4 *)(from + c);
            to[c] = four.x, to[c + 1] = four.y, to[c + 2] = four.z, to[c + 3] = four.w;
        }
    } else {
#pragma unroll
        for (int c = 0; c < W; c++) to[c] = c < size ? from[c] : 0.0f;
    }
}

template <int W> __device__ __forceinline__ float dot(const float a[W], const float b[W]) {
    float even = 0.0f, odd = 0.0f;
#pragma unroll
    for (int c = 0; c < W; c += 2) {
        even += a[c] * b[c];
        odd += a[c + 1] * b[c + 1];
    }
    return even + odd;
}

template <int W> __device__ __forceinline__ void add_times(float to[W], float factor, const float row[W]) {
#pragma unroll
    for (int c = 0; c < W; c++) to[c] += factor * row[c];
}

template <int W> __device__ __forceinline__ void add_to(float *to, const float row[W], int size) {
#pragma unroll
    for (int c = 0; c < W; c++)
        if (c < size) to[c] += row[c];
}

// Keys whose logits are computed before their values are added, so that the sums are rescaled once for all of them.
#define KEYS 4

template <int W>
__device__ void attend(Own own, int heads, int columns, int size, float scale, const float *q, const float *k, const float *v,
                       const float *bias, float *logs, float *out) {
    Part part = own.part;
    size_t row = part.query + own.row;
    float query[W], mixed[W], other[W];
    read<W>(query, q + row * columns + part.first, size);
    float most = -1e30f, total = 0.0f;
#pragma unroll
    for (int c = 0; c < W; c++) {
        query[c] *= scale;
        mixed[c] = 0.0f;
    }
    for (int start = 0; start < part.keys; start += KEYS) {
        float logits[KEYS], before = most;
#pragma unroll
        for (int e = 0; e < KEYS; e++) {
            size_t key = part.key + min(start + e, part.keys - 1);
            read<W>(other, k + key * columns + part.first, size);
            float logit = dot<W>(query, other) + (bias ? bias[key] : 0.0f);
            logits[e] = start + e < part.keys ? logit : -1e30f;
            most = fmaxf(most, logits[e]);
        }
        float factor = expf(before - most);
        total *= factor;
#pragma unroll
        for (int c = 0; c < W; c++) mixed[c] *= factor;
#pragma unroll
        for (int e = 0; e < KEYS; e++) {
            size_t key = part.key + min(start + e, part.keys - 1);
            float power = start + e < part.keys ? expf(logits[e] - most) : 0.0f;
            read<W>(other, v + key * columns + part.first, size);
            total += power;
            add_times<W>(mixed, power, other);
        }
    }
    if (!own.is_there) return;
    float factor = total > 0.0f ? 1.0f / total : 0.0f;
    float *to = out + row * columns + part.first;
#pragma unroll
    for (int c = 0; c < W; c++)
        if (c < size) to[c] = mixed[c] * factor;
    logs[row * heads + own.head] = most + logf(total);
}

// Adds to the gradients of the queries, and writes the product of each output with its gradient to `products`.
template <int W>
__device__ void attend_back_to_queries(Own own, int heads, int columns, int size, float scale, const float *q, const float *k,
                                       const float *v, const float *bias, const float *logs, const float *out, const float *dy,
                                       float *products, float *dq) {
    Part part = own.part;
    size_t row = part.query + own.row, place = row * columns + part.first;
    float query[W], change[W], other[W], sum[W];
    read<W>(other, out + place, size);
    read<W>(change, dy + place, size);
    float product = dot<W>(change, other), log = logs[row * heads + own.head];
    read<W>(query, q + place, size);
#pragma unroll
    for (int c = 0; c < W; c++) sum[c] = 0.0f;
#pragma unroll 2
    for (int j = 0; j < part.keys; j++) {
        size_t key = part.key + j;
        read<W>(other, v + key * columns + part.first, size);
        float slope = dot<W>(change, other) - product;
        read<W>(other, k + key * columns + part.first, size);
        float weight = expf(dot<W>(query, other) * scale + (bias ? bias[key] : 0.0f) - log);
        add_times<W>(sum, weight * slope * scale, other);
    }
    if (!own.is_there) return;
    products[row * heads + own.head] = product;
    add_to<W>(dq + place, sum, size);
}

// Adds to the gradients of the keys and the values.
template <int W>
__device__ void attend_back_to_keys(Own own, int heads, int columns, int size, float scale, const float *q, const float *k,
                                    const float *v, const float *bias, const float *logs, const float *dy, const float *products,
                                    float *dk, float *dv) {
    Part part = own.part;
    size_t row = part.key + own.row, place = row * columns + part.first;
    float key[W], value[W], for_key[W], for_value[W], other[W];
    read<W>(key, k + place, size);
    read<W>(value, v + place, size);
    float added = bias ? bias[row] : 0.0f;
#pragma unroll
    for (int c = 0; c < W; c++) for_key[c] = for_value[c] = 0.0f;
    for (int i = 0; i < part.queries; i++) {
        size_t query = part.query + i, number = query * heads + own.head;
        read<W>(other, dy + query * columns + part.first, size);
        float slope = dot<W>(value, other) - products[number], change[W];
        read<W>(change, q + query * columns + part.first, size);
        float weight = expf(dot<W>(key, change) * scale + added - logs[number]);
        add_times<W>(for_value, weight, other);
        add_times<W>(for_key, weight * slope * scale, change);
    }
    if (!own.is_there) return;
    add_to<W>(dk + place, for_key, size);
    add_to<W>(dv + place, for_value, size);
}

// Kernels for heads of up to W columns.
#define NARROW_HEADS(W)                                                                                                       \
    BOUNDED(128) attention_##W(                                                                                               \
        int samples, const u32 *layout, const u32 *tiles, int count, int heads, int columns, float scale, const float *q,     \
        const float *k, const float *v, const float *bias, float *logs, float *out) {                                         \
        Own own;                                                                                                              \
        if (!find(&own, samples, layout, tiles, count, heads, columns, false)) return;                                        \
        attend<W>(own, heads, columns, columns / heads, scale, q, k, v, bias, logs, out);                                     \
    }                                                                                                                         \
    BOUNDED(128) attention_backward_queries_##W(                                                                              \
        int samples, const u32 *layout, const u32 *tiles, int count, int heads, int columns, float scale, const float *q,     \
        const float *k, const float *v, const float *bias, const float *logs, const float *out, const float *dy,              \
        float *products, float *dq) {                                                                                         \
        Own own;                                                                                                              \
        if (!find(&own, samples, layout, tiles, count, heads, columns, false)) return;                                        \
        attend_back_to_queries<W>(own, heads, columns, columns / heads, scale, q, k, v, bias, logs, out, dy, products, dq);   \
    }                                                                                                                         \
    BOUNDED(128) attention_backward_keys_##W(                                                                                 \
        int samples, const u32 *layout, const u32 *tiles, int count, int heads, int columns, float scale, const float *q,     \
        const float *k, const float *v, const float *bias, const float *logs, const float *dy, const float *products, float *dk, \
        float *dv) {                                                                                                          \
        Own own;                                                                                                              \
        if (!find(&own, samples, layout, tiles, count, heads, columns, true)) return;                                         \
        attend_back_to_keys<W>(own, heads, columns, columns / heads, scale, q, k, v, bias, logs, dy, products, dk, dv);       \
    }

NARROW_HEADS(16)
NARROW_HEADS(32)

// Attention of one layer for the benchmark, dense, sparse and by two rivals, with rows in deadline order and the idle row first. SIZE (columns of a head, 32)
// is defined at compile time. A block has up to 32 queries of one head of one sample, eight of them per warp. All logits of the queries are kept in shared memory. No
// kernel writes the attention weights to global memory.
//
// Sparse attention takes three steps. `summarize` sums up the queries and the keys of each block of rows. `choose` scores each block's queries with the means
// of the keys of the blocks of other chunks, and writes a list of the rows that the queries keep: the idle row, their own chunk, the best blocks, and the
// middle row of every chunk. `sparse` is the dense kernel over these lists: only kept keys are loaded and scored, once for all queries of a block.
//
// Block-drop is the same three steps without chunks: the idle row and the best blocks of all. `top_keys` is the dense kernel in which each query keeps its best
// keys: it scores all of them.

#define QUERIES 32
#define KEYS 64
#define EACH 8
#define THREADS (32 * QUERIES / EACH)
#define STRIDE (SIZE + 4)
#define NOWHERE -3.0e38f

struct Shape {
    int rows, columns, heads;
    float scale;
};

// Blocks of rows: their number, the length of a chunk (0: there are no chunks), the number of blocks of other chunks to look into, and the room for a list.
struct Cut {
    int blocks, chunk, keep, longest;
};

// Queries of a thread block, which follow each other, and the rows that they attend to: listed ones, or all.
struct Part {
    int first, queries, count;
    const int *list;
};

template <class T> __device__ __forceinline__ T warp_sum(T value) {
    for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(0xffffffffu, value, step);
    return value;
}

__device__ __forceinline__ float warp_greatest(float value) {
    for (int step = 16; step > 0; step /= 2) value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, step));
    return value;
}

// The thread's part of COUNT rows.
template <int COUNT> struct Rows {
    static constexpr int LEN = COUNT * SIZE / 4 / THREADS;
    float4 values[LEN];

    // Fetches rows from `start` on, of `count` in all: those of a list, or those from row `base` on.
    __device__ __forceinline__ void fetch(Shape shape, const float *data, const int *list, int base, int start, int count) {
#pragma unroll
        for (int k = 0; k < LEN; k++) {
            int place = threadIdx.x + k * THREADS, t = start + place / (SIZE / 4), c = place % (SIZE / 4) * 4;
            values[k] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
            if (t < count) {
                int row = list ? list[t] : base + t;
                values[k] = *(const float4 *)(data + (size_t)row * shape.columns + c);
            }
        }
    }

    __device__ __forceinline__ void store(float *to) {
#pragma unroll
        for (int k = 0; k < LEN; k++) {
            int place = threadIdx.x + k * THREADS;
            *(float4 *)(to + place / (SIZE / 4) * STRIDE + place % (SIZE / 4) * 4) = values[k];
        }
    }
};

// Computes the logits of the part's queries; a lane has two keys at a time. The next keys are loaded meanwhile.
__device__ __forceinline__ void score(Shape shape, Part part, int padded, const float *q, const float *k, float *queries, float *rows,
                                      float *logits) {
    int lane = threadIdx.x % 32, own = threadIdx.x / 32 * EACH;
    Rows<QUERIES> first;
    first.fetch(shape, q, nullptr, part.first, 0, part.queries);
    first.store(queries);
    Rows<KEYS> next;
    next.fetch(shape, k, part.list, 0, 0, part.count);
    for (int start = 0; start < part.count; start += KEYS) {
        __syncthreads();
        next.store(rows);
        __syncthreads();
        next.fetch(shape, k, part.list, 0, start + KEYS, part.count);
        float sums[2][EACH];
#pragma unroll
        for (int e = 0; e < EACH; e++) sums[0][e] = sums[1][e] = 0.0f;
        const float4 *left = (const float4 *)(rows + lane * STRIDE), *right = left + 32 * STRIDE / 4;
#pragma unroll
        for (int c = 0; c < SIZE / 4; c++) {
            float4 b = left[c], d = right[c];
#pragma unroll
            for (int e = 0; e < EACH; e++) {
                float4 a = ((const float4 *)(queries + (own + e) * STRIDE))[c];
                sums[0][e] = fmaf(a.w, b.w, fmaf(a.z, b.z, fmaf(a.y, b.y, fmaf(a.x, b.x, sums[0][e]))));
                sums[1][e] = fmaf(a.w, d.w, fmaf(a.z, d.z, fmaf(a.y, d.y, fmaf(a.x, d.x, sums[1][e]))));
            }
        }
#pragma unroll
        for (int e = 0; e < EACH; e++) {
            float *row = logits + (own + e) * padded + start + lane;
            row[0] = start + lane < part.count ? sums[0][e] * shape.scale : NOWHERE;
            row[32] = start + lane + 32 < part.count ? sums[1][e] * shape.scale : NOWHERE;
        }
    }
    __syncwarp();
}

// A whole number in the order of the logits.
__device__ __forceinline__ unsigned rank_of(float logit) {
    unsigned bits = __float_as_uint(logit);
    return bits >> 31 ? ~bits : bits | 0x80000000u;
}

// Masks all but the idle row's logit and the `keep` greatest of the others; of equal ones the earlier stay. A warp has a row. The least kept logit is found bit
// by bit.
__device__ __forceinline__ void keep_top(float *row, int count, int keep) {
    int lane = threadIdx.x % 32, kept = count - 1;
    if (keep >= kept) return;
    unsigned least = 0;
    for (int bit = 31; bit >= 0 && kept != keep; bit--) {
        unsigned candidate = least | 1u << bit;
        int reached = 0;
        for (int j = 1 + lane; j < count; j += 32) reached += rank_of(row[j]) >= candidate;
        reached = warp_sum(reached);
        if (reached >= keep) least = candidate, kept = reached;
    }
    for (int j = 1 + lane; j < count; j += 32)
        if (rank_of(row[j]) < least) row[j] = NOWHERE;
    __syncwarp();
    if (lane == 0)
        for (int j = count - 1; kept > keep; j--)
            if (rank_of(row[j]) == least) row[j] = NOWHERE, kept--;
    __syncwarp();
}

// Attention of the part's queries to all keys, or to the `keep` best ones if TOP. The data begin at the head's columns of the sample's first row.
template <bool TOP>
__device__ __forceinline__ void attend(Shape shape, Part part, int keep, const float *q, const float *k, const float *v, float *out) {
    extern __shared__ float4 shared[];
    float *queries = (float *)shared, *rows = queries + QUERIES * STRIDE, *logits = rows + KEYS * STRIDE;
    int padded = (part.count + KEYS - 1) / KEYS * KEYS;
    score(shape, part, padded, q, k, queries, rows, logits);
    int lane = threadIdx.x % 32, own = threadIdx.x / 32 * EACH, half = lane / 16, column = lane % 16 * 2;
    Rows<KEYS> next;
    next.fetch(shape, v, part.list, 0, 0, part.count);
    float factor[EACH];
    float2 mixed[EACH];
#pragma unroll
    for (int e = 0; e < EACH; e++) {
        float *row = logits + (own + e) * padded;
        // The idle row, the first, attends to all rows.
        if (TOP && part.first + own + e > 0) keep_top(row, part.count, keep);
        float most = NOWHERE, sum = 0.0f;
        for (int j = lane; j < padded; j += 32) most = fmaxf(most, row[j]);
        most = warp_greatest(most);
        for (int j = lane; j < padded; j += 32) sum += row[j] = __expf(row[j] - most);
        factor[e] = 1.0f / warp_sum(sum);
        mixed[e] = make_float2(0.0f, 0.0f);
    }
    for (int start = 0; start < part.count; start += KEYS) {
        __syncthreads();
        next.store(rows);
        __syncthreads();
        next.fetch(shape, v, part.list, 0, start + KEYS, part.count);
        // Each half of the warp has four of eight values, each lane two of their columns.
#pragma unroll
        for (int j = 0; j < KEYS; j += 8) {
            const float *from = rows + (j + 4 * half) * STRIDE + column;
            float2 x = *(const float2 *)from, y = *(const float2 *)(from + STRIDE);
            float2 z = *(const float2 *)(from + 2 * STRIDE), w = *(const float2 *)(from + 3 * STRIDE);
#pragma unroll
            for (int e = 0; e < EACH; e++) {
                float4 share = *(const float4 *)(logits + (own + e) * padded + start + j + 4 * half);
                mixed[e].x += share.x * x.x + share.y * y.x + share.z * z.x + share.w * w.x;
                mixed[e].y += share.x * x.y + share.y * y.y + share.z * z.y + share.w * w.y;
            }
        }
    }
#pragma unroll
    for (int e = 0; e < EACH; e++) {
        mixed[e].x += __shfl_xor_sync(0xffffffffu, mixed[e].x, 16);
        mixed[e].y += __shfl_xor_sync(0xffffffffu, mixed[e].y, 16);
        if (own + e < part.queries && half == 0) {
            float2 result = make_float2(mixed[e].x * factor[e], mixed[e].y * factor[e]);
            *(float2 *)(out + (size_t)(part.first + own + e) * shape.columns + column) = result;
        }
    }
}

// First number of the head's columns of the sample that the thread block has.
__device__ __forceinline__ size_t first_of(Shape shape) {
    return (size_t)(blockIdx.x / shape.heads) * shape.rows * shape.columns + blockIdx.x % shape.heads * SIZE;
}

extern "C" __global__ void __launch_bounds__(THREADS, 2)
dense(Shape shape, const float *q, const float *k, const float *v, float *out) {
    int first = blockIdx.y * QUERIES;
    Part part = {first, min(QUERIES, shape.rows - first), shape.rows, nullptr};
    size_t at = first_of(shape);
    attend<false>(shape, part, 0, q + at, k + at, v + at, out + at);
}

extern "C" __global__ void __launch_bounds__(THREADS, 2)
top_keys(Shape shape, int keep, const float *q, const float *k, const float *v, float *out) {
    int first = blockIdx.y * QUERIES;
    Part part = {first, min(QUERIES, shape.rows - first), shape.rows, nullptr};
    size_t at = first_of(shape);
    attend<true>(shape, part, keep, q + at, k + at, v + at, out + at);
}

// The idle row's query, which attends to all rows.
extern "C" __global__ void __launch_bounds__(THREADS, 2)
idle(Shape shape, const float *q, const float *k, const float *v, float *out) {
    Part part = {0, 1, shape.rows, nullptr};
    size_t at = first_of(shape);
    attend<false>(shape, part, 0, q + at, k + at, v + at, out + at);
}

// Tiles of up to 32 queries, each with its block, its first row and its number of queries.
extern "C" __global__ void __launch_bounds__(THREADS, 2)
sparse(Shape shape, Cut cut, const int *tiles, const int *lists, const int *counts, const float *q, const float *k, const float *v,
       float *out) {
    const int *tile = tiles + 3 * blockIdx.y;
    size_t list = (size_t)(blockIdx.x / shape.heads) * cut.blocks + tile[0];
    Part part = {tile[1], tile[2], counts[list], lists + list * cut.longest};
    size_t at = first_of(shape);
    attend<false>(shape, part, 0, q + at, k + at, v + at, out + at);
}

// Sum of the queries of each block, and mean of its keys, over the columns of all heads. `spans` has the first row and the number of rows of each block.
extern "C" __global__ void summarize(Shape shape, Cut cut, const int *spans, const float *q, const float *k, float *sums) {
    int block = blockIdx.y, first = spans[2 * block], len = spans[2 * block + 1];
    for (int column = threadIdx.x; column < shape.columns; column += blockDim.x) {
        size_t at = ((size_t)blockIdx.x * shape.rows + first) * shape.columns + column;
        float query = 0.0f, key = 0.0f;
        for (int row = 0; row < len; row++) {
            query += q[at + (size_t)row * shape.columns];
            key += k[at + (size_t)row * shape.columns];
        }
        float *to = sums + ((size_t)blockIdx.x * cut.blocks + block) * 2 * shape.columns + column;
        to[0] = query;
        to[shape.columns] = key / len;
    }
}

// Lists the rows that the queries of a block keep, in ascending order. Of equal scores the earlier block wins.
extern "C" __global__ void choose(Shape shape, Cut cut, const int *spans, const float *sums, int *lists, int *counts) {
    extern __shared__ float scores[];
    int *places = (int *)(scores + cut.blocks), *looked = places + cut.blocks + 1;
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32, jobs = shape.rows - 1;
    size_t sample = (size_t)blockIdx.x * cut.blocks, own = sample + blockIdx.y;
    int chunk = cut.chunk ? (spans[2 * blockIdx.y] - 1) / cut.chunk : -1;
    const float *query = sums + own * 2 * shape.columns;
    for (int other = warp; other < cut.blocks; other += warps) {
        const float *key = sums + (sample + other) * 2 * shape.columns + shape.columns;
        float dot = 0.0f;
        for (int column = lane; column < shape.columns; column += 32) dot = fmaf(query[column], key[column], dot);
        dot = warp_sum(dot);
        if (lane == 0) scores[other] = dot;
    }
    __syncthreads();
    for (int other = threadIdx.x; other < cut.blocks; other += blockDim.x) {
        int first = spans[2 * other], len = spans[2 * other + 1], of = cut.chunk ? (first - 1) / cut.chunk : 0, better = 0;
        for (int j = 0; j < cut.blocks; j++) {
            bool is_candidate = !cut.chunk || (spans[2 * j] - 1) / cut.chunk != chunk;
            better += is_candidate && (scores[j] > scores[other] || (scores[j] == scores[other] && j < other));
        }
        bool is_looked_into = of == chunk || better < cut.keep;
        int begin = 1 + of * cut.chunk, middle = begin + (min(cut.chunk, jobs + 1 - begin) - 1) / 2;
        bool has_middle = cut.chunk && middle >= first && middle < first + len;
        looked[other] = is_looked_into ? -1 : middle;
        places[1 + other] = is_looked_into ? len : has_middle;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        // The idle row is the first of every list.
        places[0] = 1;
        for (int other = 0; other < cut.blocks; other++) places[1 + other] += places[other];
        counts[own] = places[cut.blocks];
        lists[own * cut.longest] = 0;
    }
    __syncthreads();
    for (int other = warp; other < cut.blocks; other += warps) {
        int *to = lists + own * cut.longest + places[other], count = places[other + 1] - places[other];
        for (int t = lane; t < count; t += 32) to[t] = looked[other] < 0 ? spans[2 * other] + t : looked[other];
    }
}

// Attention of one layer for the benchmark, dense and block top-k sparse, with rows in deadline order and the idle row first. SIZE (columns of a head, 32)
// and KEEP (keys kept per query and block) are defined at compile time. A block has 32 queries of one head of one sample, EACH of them per warp: 8, which is
// best for products, or 4, which leaves more warps to hide the latency of lookups. All logits of the queries are kept in shared memory. Neither kernel
// writes the attention weights to global memory.

#define QUERIES 32
#define KEYS 64
#define DENSE_EACH 8
#define SPARSE_EACH 4
#define STRIDE (SIZE + 4)
#define NOWHERE -3.0e38f

struct Shape {
    int rows, columns, heads, padded;
    float scale;
};

__device__ __forceinline__ float warp_sum(float value) {
    for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(0xffffffffu, value, step);
    return value;
}

__device__ __forceinline__ float warp_greatest(float value) {
    for (int step = 16; step > 0; step /= 2) value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, step));
    return value;
}

// The thread's part of COUNT rows.
template <int COUNT, int EACH> struct Rows {
    static constexpr int THREADS = 32 * QUERIES / EACH;
    static constexpr int LEN = COUNT * SIZE / 4 / THREADS;
    float4 values[LEN];

    __device__ __forceinline__ void fetch(Shape shape, const float *data, int row) {
#pragma unroll
        for (int k = 0; k < LEN; k++) {
            int place = threadIdx.x + k * THREADS, r = row + place / (SIZE / 4), c = place % (SIZE / 4) * 4;
            values[k] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
            if (r < shape.rows) values[k] = *(const float4 *)(data + (size_t)r * shape.columns + c);
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

// Computes the logits of the block's queries; a lane has two keys at a time. The next keys are loaded meanwhile.
template <int EACH>
__device__ __forceinline__ void score(Shape shape, const float *q, const float *k, float *queries, float *rows, float *logits) {
    int lane = threadIdx.x % 32, own = threadIdx.x / 32 * EACH;
    Rows<QUERIES, EACH> first;
    first.fetch(shape, q, blockIdx.y * QUERIES);
    first.store(queries);
    Rows<KEYS, EACH> next;
    next.fetch(shape, k, 0);
    for (int start = 0; start < shape.rows; start += KEYS) {
        __syncthreads();
        next.store(rows);
        __syncthreads();
        next.fetch(shape, k, start + KEYS);
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
            float *row = logits + (own + e) * shape.padded + start + lane;
            row[0] = start + lane < shape.rows ? sums[0][e] * shape.scale : NOWHERE;
            row[32] = start + lane + 32 < shape.rows ? sums[1][e] * shape.scale : NOWHERE;
        }
    }
    __syncwarp();
}

extern "C" __global__ void __launch_bounds__(32 * QUERIES / DENSE_EACH, 2)
dense(Shape shape, const float *q, const float *k, const float *v, float *out) {
    extern __shared__ float4 shared[];
    float *queries = (float *)shared, *rows = queries + QUERIES * STRIDE, *logits = rows + KEYS * STRIDE;
    size_t first = (size_t)(blockIdx.x / shape.heads) * shape.rows * shape.columns + blockIdx.x % shape.heads * SIZE;
    score<DENSE_EACH>(shape, q + first, k + first, queries, rows, logits);
    int lane = threadIdx.x % 32, own = threadIdx.x / 32 * DENSE_EACH, half = lane / 16, column = lane % 16 * 2;
    Rows<KEYS, DENSE_EACH> next;
    next.fetch(shape, v + first, 0);
    float factor[DENSE_EACH];
    float2 mixed[DENSE_EACH];
#pragma unroll
    for (int e = 0; e < DENSE_EACH; e++) {
        float *row = logits + (own + e) * shape.padded;
        float most = NOWHERE, sum = 0.0f;
        for (int j = lane; j < shape.padded; j += 32) most = fmaxf(most, row[j]);
        most = warp_greatest(most);
        for (int j = lane; j < shape.padded; j += 32) sum += row[j] = __expf(row[j] - most);
        factor[e] = 1.0f / warp_sum(sum);
        mixed[e] = make_float2(0.0f, 0.0f);
    }
    for (int start = 0; start < shape.rows; start += KEYS) {
        __syncthreads();
        next.store(rows);
        __syncthreads();
        next.fetch(shape, v + first, start + KEYS);
        // Each half of the warp has four of eight values, each lane two of their columns.
#pragma unroll
        for (int j = 0; j < KEYS; j += 8) {
            const float *from = rows + (j + 4 * half) * STRIDE + column;
            float2 x = *(const float2 *)from, y = *(const float2 *)(from + STRIDE);
            float2 z = *(const float2 *)(from + 2 * STRIDE), w = *(const float2 *)(from + 3 * STRIDE);
#pragma unroll
            for (int e = 0; e < DENSE_EACH; e++) {
                float4 share = *(const float4 *)(logits + (own + e) * shape.padded + start + j + 4 * half);
                mixed[e].x += share.x * x.x + share.y * y.x + share.z * z.x + share.w * w.x;
                mixed[e].y += share.x * x.y + share.y * y.y + share.z * z.y + share.w * w.y;
            }
        }
    }
#pragma unroll
    for (int e = 0; e < DENSE_EACH; e++) {
        mixed[e].x += __shfl_xor_sync(0xffffffffu, mixed[e].x, 16);
        mixed[e].y += __shfl_xor_sync(0xffffffffu, mixed[e].y, 16);
        int query = blockIdx.y * QUERIES + own + e;
        if (query < shape.rows && half == 0) {
            float2 result = make_float2(mixed[e].x * factor[e], mixed[e].y * factor[e]);
            *(float2 *)(out + first + (size_t)query * shape.columns + column) = result;
        }
    }
}

// Lists the keys that a query attends to: the idle row, its own chunk, and of each block the KEEP other rows with the greatest logits, the earlier of equal
// ones first. Each lane has one block: it first finds the least logit that is kept, then the rows.
__device__ __forceinline__ int select(Shape shape, int query, int chunk, int block, const float *logits, unsigned short *list) {
    int lane = threadIdx.x % 32, jobs = shape.rows - 1;
    int begin = (query - 1) / chunk * chunk, end = min(begin + chunk, jobs);
    if (lane == 0) list[0] = 0;
    for (int job = begin + lane; job < end; job += 32) list[1 + job - begin] = job + 1;
    int listed = 1 + end - begin;
    for (int first = 0; first < jobs; first += 32 * block) {
        int start = min(first + lane * block, jobs), stop = min(start + block, jobs);
        float best[KEEP];
#pragma unroll
        for (int s = 0; s < KEEP; s++) best[s] = NOWHERE;
#pragma unroll 5
        for (int job = start; job < stop; job++) {
            float value = job >= begin && job < end ? NOWHERE : logits[1 + job];
#pragma unroll
            for (int s = 0; s < KEEP; s++) {
                float greater = fmaxf(best[s], value);
                value = fminf(best[s], value);
                best[s] = greater;
            }
        }
        float least = best[KEEP - 1];
        int candidates = stop - start - max(0, min(stop, end) - max(start, begin)), equal = KEEP;
#pragma unroll
        for (int s = 0; s < KEEP; s++) equal -= best[s] > least;
        int count = min(candidates, KEEP), after = count;
        for (int step = 1; step < 32; step *= 2) {
            int before = __shfl_up_sync(0xffffffffu, after, step);
            if (lane >= step) after += before;
        }
        int place = listed + after - count;
#pragma unroll 5
        for (int job = start; job < stop; job++) {
            float value = logits[1 + job];
            if (value < least || (job >= begin && job < end)) continue;
            if (value > least || equal-- > 0) list[place++] = job + 1;
        }
        listed += __shfl_sync(0xffffffffu, after, 31);
    }
    __syncwarp();
    return listed;
}

extern "C" __global__ void __launch_bounds__(32 * QUERIES / SPARSE_EACH, 2)
sparse(Shape shape, int chunk, int block, int longest, const float *q, const float *k, const float *v, float *out) {
    extern __shared__ float4 shared[];
    float *queries = (float *)shared, *rows = queries + QUERIES * STRIDE, *logits = rows + KEYS * STRIDE;
    unsigned short *lists = (unsigned short *)(logits + QUERIES * shape.padded);
    size_t first = (size_t)(blockIdx.x / shape.heads) * shape.rows * shape.columns + blockIdx.x % shape.heads * SIZE;
    score<SPARSE_EACH>(shape, q + first, k + first, queries, rows, logits);
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, own = warp * SPARSE_EACH;
    unsigned short *list = lists + warp * longest;
    for (int e = 0; e < SPARSE_EACH; e++) {
        int query = blockIdx.y * QUERIES + own + e;
        if (query >= shape.rows) return;
        float *row = logits + (own + e) * shape.padded;
        // The idle row attends to all.
        int count = query == 0 ? shape.rows : select(shape, query, chunk, block, row, list);
        float most = NOWHERE, sum = 0.0f;
        for (int t = lane; t < count; t += 32) most = fmaxf(most, row[query == 0 ? t : list[t]]);
        most = warp_greatest(most);
        for (int t = lane; t < count; t += 32) {
            int j = query == 0 ? t : list[t];
            sum += row[j] = __expf(row[j] - most);
        }
        float factor = 1.0f / warp_sum(sum);
        // Four values at a time, eight lanes for each.
        float4 mixed = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        const float *values = v + first + lane % 8 * 4;
#pragma unroll 8
        for (int t = lane / 8; t < count; t += 4) {
            int j = query == 0 ? t : list[t];
            float share = row[j];
            float4 value = *(const float4 *)(values + (size_t)j * shape.columns);
            mixed.x += share * value.x;
            mixed.y += share * value.y;
            mixed.z += share * value.z;
            mixed.w += share * value.w;
        }
        for (int step = 8; step < 32; step *= 2) {
            mixed.x += __shfl_xor_sync(0xffffffffu, mixed.x, step);
            mixed.y += __shfl_xor_sync(0xffffffffu, mixed.y, step);
            mixed.z += __shfl_xor_sync(0xffffffffu, mixed.z, step);
            mixed.w += __shfl_xor_sync(0xffffffffu, mixed.w, step);
        }
        if (lane < 8) {
            float4 result = make_float4(mixed.x * factor, mixed.y * factor, mixed.z * factor, mixed.w * factor);
            *(float4 *)(out + first + (size_t)query * shape.columns + lane * 4) = result;
        }
        __syncwarp();
    }
}

// Kernels of the tensor operations, compiled at run time for the GPU at hand. The order of additions depends on the shapes alone, and there are no atomic
// additions, so the same input always gives the same numbers. Matrices are row-major.

typedef unsigned int u32;

// How kernels begin. In a gang (gang.cu) they are functions, called by kernels that work on the calls of many devices.
#ifdef GANG
#define KERNEL static __device__ __forceinline__ void
#define BOUNDED(threads) KERNEL
#define TABLE_ARGUMENT const Table &
#else
#define KERNEL extern "C" __global__ void
#define BOUNDED(threads) extern "C" __global__ void __launch_bounds__(threads)
#define TABLE_ARGUMENT const __grid_constant__ Table
#endif

__device__ __forceinline__ int here() { return blockIdx.x * blockDim.x + threadIdx.x; }

__device__ __forceinline__ float warp_sum(float value) {
    for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(0xffffffffu, value, step);
    return value;
}

__device__ __forceinline__ float warp_greatest(float value) {
    for (int step = 16; step > 0; step /= 2) value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, step));
    return value;
}

// Sum over a block of 256 threads; valid in the first thread.
__device__ double block_sum(double value) {
    __shared__ double values[256];
    values[threadIdx.x] = value;
    for (int half = 128; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) values[threadIdx.x] += values[threadIdx.x + half];
    }
    return values[0];
}

__device__ __forceinline__ float sigmoid(float x) { return 1.0f / (1.0f + expf(-x)); }

// ---- Elementwise operations.

KERNEL add(int n, const float *from, float *out) {
    int k = here();
    if (k < n) out[k] += from[k];
}

KERNEL add_row(int n, int columns, const float *row, float *out) {
    int k = here();
    if (k < n) out[k] += row[k % columns];
}

KERNEL relu(int n, const float *x, float *out) {
    int k = here();
    if (k < n) out[k] = fmaxf(x[k], 0.0f);
}

KERNEL relu_backward(int n, const float *x, float *gradient) {
    int k = here();
    if (k < n && !(x[k] > 0.0f)) gradient[k] = 0.0f;
}

// ---- Operations on many matrices at once: parameters, gradients and moments of a network.

#define TABLE 64
#define CHUNK 1024

// Up to 64 lists of up to four matrices of the same length. A block works on one chunk of one list; list t has the blocks from blocks[t] on.
struct Table {
    int blocks[TABLE + 1];
    int len[TABLE];
    float *at[4][TABLE];
};

// The list of a block, and its range of values.
struct Chunk {
    int list, begin, end;
};

__device__ __forceinline__ Chunk chunk_of(const Table &table) {
    Chunk chunk;
    chunk.list = 0;
    while (blockIdx.x >= table.blocks[chunk.list + 1]) chunk.list++;
    chunk.begin = (blockIdx.x - table.blocks[chunk.list]) * CHUNK;
    chunk.end = min(chunk.begin + CHUNK, table.len[chunk.list]);
    return chunk;
}

KERNEL clear_all(TABLE_ARGUMENT table) {
    Chunk chunk = chunk_of(table);
    float *out = table.at[0][chunk.list];
    for (int k = chunk.begin + threadIdx.x; k < chunk.end; k += blockDim.x) out[k] = 0.0f;
}

KERNEL scale_all(TABLE_ARGUMENT table, float factor) {
    Chunk chunk = chunk_of(table);
    float *out = table.at[0][chunk.list];
    for (int k = chunk.begin + threadIdx.x; k < chunk.end; k += blockDim.x) out[k] *= factor;
}

KERNEL blend_all(TABLE_ARGUMENT table, float share) {
    Chunk chunk = chunk_of(table);
    const float *from = table.at[0][chunk.list];
    float *out = table.at[1][chunk.list];
    for (int k = chunk.begin + threadIdx.x; k < chunk.end; k += blockDim.x) out[k] += share * (from[k] - out[k]);
}

// Writes the sum of each block to `parts`.
KERNEL square_sum_of_all(TABLE_ARGUMENT table, double *parts) {
    Chunk chunk = chunk_of(table);
    const float *x = table.at[0][chunk.list];
    double sum = 0.0;
    for (int k = chunk.begin + threadIdx.x; k < chunk.end; k += blockDim.x) sum += (double)x[k] * (double)x[k];
    sum = block_sum(sum);
    if (threadIdx.x == 0) parts[blockIdx.x] = sum;
}

// If a norm is given, gradients are scaled down to the norm `most` if theirs is greater, and nothing changes if it is not finite.
KERNEL adam_all(TABLE_ARGUMENT table, float beta1, float beta2, float step, float correction,
                                    float epsilon, float decay, float most, const double *norm) {
    float factor = 1.0f;
    if (norm) {
        if (!isfinite(*norm)) return;
        if (*norm > most) factor = (float)((double)most / *norm);
    }
    Chunk chunk = chunk_of(table);
    const float *gradient = table.at[0][chunk.list];
    float *first = table.at[1][chunk.list], *second = table.at[2][chunk.list], *parameter = table.at[3][chunk.list];
    for (int k = chunk.begin + threadIdx.x; k < chunk.end; k += blockDim.x) {
        float g = factor * gradient[k], value = parameter[k];
        float m = beta1 * first[k] + (1.0f - beta1) * g;
        float v = beta2 * second[k] + (1.0f - beta2) * g * g;
        first[k] = m;
        second[k] = v;
        parameter[k] = value - decay * value - step * m / (sqrtf(v * correction) + epsilon);
    }
}

// ---- Sums.

// Sum or its square root, by one block.
KERNEL sum_of_parts(int n, int is_root, const double *parts, double *total) {
    double sum = 0.0;
    for (int k = threadIdx.x; k < n; k += blockDim.x) sum += parts[k];
    sum = block_sum(sum);
    if (threadIdx.x == 0) *total = is_root ? sqrt(sum) : sum;
}

// Sums over slices of the rows of x and, if y is given, of x∘y. A block has 32 columns of one slice; `parts` gets one row per slice.
KERNEL sum_of_rows(int rows, int columns, int slice, const float *x, const float *y, float *parts) {
    __shared__ float plain_sums[8][33], product_sums[8][33];
    int column = blockIdx.x * 32 + threadIdx.x;
    int end = min(rows, (blockIdx.y + 1) * slice);
    float plain = 0.0f, product = 0.0f;
    if (column < columns) {
        for (int row = blockIdx.y * slice + threadIdx.y; row < end; row += 8) {
            float value = x[row * columns + column];
            plain += value;
            if (y) product += value * y[row * columns + column];
        }
    }
    plain_sums[threadIdx.y][threadIdx.x] = plain;
    product_sums[threadIdx.y][threadIdx.x] = product;
    __syncthreads();
    if (threadIdx.y > 0 || column >= columns) return;
    for (int k = 1; k < 8; k++) {
        plain += plain_sums[k][threadIdx.x];
        product += product_sums[k][threadIdx.x];
    }
    int width = y ? 2 * columns : columns;
    parts[blockIdx.y * width + column] = plain;
    if (y) parts[blockIdx.y * width + columns + column] = product;
}

// Adds the sums of all slices to the result, and those of the products if there are any.
KERNEL add_slices(int slices, int columns, const float *parts, float *plain, float *product) {
    int place = here(), width = product ? 2 * columns : columns;
    if (place >= width) return;
    float sum = 0.0f;
    for (int k = 0; k < slices; k++) sum += parts[k * width + place];
    if (place < columns) plain[place] += sum;
    else product[place - columns] += sum;
}

// ---- Adding rows to rows.

// Adds row from[k] of x to row to[k] of out. No two numbers in `to` may be equal. A missing list stands for row k.
KERNEL add_rows(int n, int columns, const float *x, const u32 *from, float *out, const u32 *to) {
    int place = here();
    if (place >= n) return;
    int k = place / columns, column = place % columns;
    int source = from ? from[k] : k, target = to ? to[k] : k;
    out[target * columns + column] += x[source * columns + column];
}

// The same where several rows are added to one: a block adds all rows of group g, order[starts[g]] up to order[starts[g + 1]], to its target. Without
// targets it writes their sum to row g of `out`.
KERNEL add_groups(int columns, const float *x, const u32 *from, float *out, const u32 *order,
                                      const u32 *starts, const u32 *targets) {
    __shared__ float sums[512];
    int group = blockIdx.x, column = blockIdx.y * blockDim.x + threadIdx.x;
    float sum = 0.0f;
    if (column < columns) {
        int end = starts[group + 1];
        for (int place = starts[group] + threadIdx.y; place < end; place += blockDim.y) {
            int k = order ? order[place] : place;
            sum += x[(from ? from[k] : k) * columns + column];
        }
    }
    if (blockDim.y > 1) {
        sums[threadIdx.y * blockDim.x + threadIdx.x] = sum;
        __syncthreads();
        if (threadIdx.y == 0)
            for (int k = 1; k < blockDim.y; k++) sum += sums[k * blockDim.x + threadIdx.x];
    }
    if (threadIdx.y > 0 || column >= columns) return;
    if (targets) out[targets[group] * columns + column] += sum;
    else out[group * columns + column] = sum;
}

// ---- Layer norm: one warp per row.

KERNEL layer_norm(int rows, int columns, const float *x, const float *change, const float *weight,
                                      const float *bias, float *normals, float *scales, float *out) {
    int row = here() / 32, lane = threadIdx.x % 32;
    if (row >= rows) return;
    int first = row * columns;
    float *from = normals + first, *to = out + first;
    float sum = 0.0f;
    for (int k = lane; k < columns; k += 32) {
        float value = change ? x[first + k] + change[first + k] : x[first + k];
        from[k] = value;
        sum += value;
    }
    float mean = warp_sum(sum) / columns;
    float squares = 0.0f;
    for (int k = lane; k < columns; k += 32) squares += (from[k] - mean) * (from[k] - mean);
    float scale = 1.0f / sqrtf(warp_sum(squares) / columns + 1e-5f);
    for (int k = lane; k < columns; k += 32) {
        float normal = (from[k] - mean) * scale;
        from[k] = normal;
        to[k] = normal * weight[k] + bias[k];
    }
    if (lane == 0) scales[row] = scale;
}

KERNEL layer_norm_backward(int rows, int columns, const float *normal, const float *scales,
                                               const float *weight, const float *dy, float *dx) {
    int row = here() / 32, lane = threadIdx.x % 32;
    if (row >= rows) return;
    int first = row * columns;
    float sum = 0.0f, along = 0.0f;
    for (int k = lane; k < columns; k += 32) {
        float change = dy[first + k] * weight[k];
        sum += change;
        along += change * normal[first + k];
    }
    sum = warp_sum(sum) / columns;
    along = warp_sum(along) / columns;
    float scale = scales[row];
    for (int k = lane; k < columns; k += 32)
        dx[first + k] = scale * (dy[first + k] * weight[k] - sum - normal[first + k] * along);
}

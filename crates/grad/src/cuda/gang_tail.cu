// What only a gang has: products, fills and copies, and a kernel around each function.

// Fills 4-byte words with zeros.
KERNEL fill_zero(int n, u32 *to) {
    for (int k = here(); k < n; k += gridDim.x * blockDim.x) to[k] = 0;
}

// Copies 4-byte words. Either side may be in the memory of the processor.
KERNEL copy_words(int n, const u32 *from, u32 *to) {
    for (int k = here(); k < n; k += gridDim.x * blockDim.x) to[k] = from[k];
}

// Matrix product: a block has 64 × 64 numbers of the result, a thread 4 × 4. The order of its sums depends on the shapes alone, whatever is computed beside it,
// which cuBLAS does not promise.
#define SIDE 64
#define DEPTH 16

KERNEL product(int m, int n, int k, int left_transposed, int right_transposed, int accumulate, const float *left, const float *right,
               float *out) {
    __shared__ __align__(16) float a[DEPTH][SIDE + 4], b[DEPTH][SIDE + 4];
    int row = blockIdx.y * SIDE, column = blockIdx.x * SIDE, t = threadIdx.x;
    int down = t / 16 * 4, across = t % 16 * 4;
    float sums[4][4];
#pragma unroll
    for (int i = 0; i < 4; i++)
#pragma unroll
        for (int j = 0; j < 4; j++) sums[i][j] = 0.0f;
    for (int start = 0; start < k; start += DEPTH) {
#pragma unroll
        for (int part = 0; part < 4; part++) {
            if (left_transposed) {
                int i = t % SIDE, d = t / SIDE + 4 * part;
                a[d][i] = start + d < k && row + i < m ? left[(size_t)(start + d) * m + row + i] : 0.0f;
            } else {
                int d = t % DEPTH, i = t / DEPTH + 16 * part;
                a[d][i] = start + d < k && row + i < m ? left[(size_t)(row + i) * k + start + d] : 0.0f;
            }
            if (right_transposed) {
                int d = t % DEPTH, j = t / DEPTH + 16 * part;
                b[d][j] = start + d < k && column + j < n ? right[(size_t)(column + j) * k + start + d] : 0.0f;
            } else {
                int j = t % SIDE, d = t / SIDE + 4 * part;
                b[d][j] = start + d < k && column + j < n ? right[(size_t)(start + d) * n + column + j] : 0.0f;
            }
        }
        __syncthreads();
#pragma unroll
        for (int d = 0; d < DEPTH; d++) {
            float4 x = *(const float4 *)&a[d][down], y = *(const float4 *)&b[d][across];
            float xs[4] = {x.x, x.y, x.z, x.w}, ys[4] = {y.x, y.y, y.z, y.w};
#pragma unroll
            for (int i = 0; i < 4; i++)
#pragma unroll
                for (int j = 0; j < 4; j++) sums[i][j] += xs[i] * ys[j];
        }
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < 4; i++)
#pragma unroll
        for (int j = 0; j < 4; j++)
            if (row + down + i < m && column + across + j < n) {
                float *to = out + (size_t)(row + down + i) * n + column + across + j;
                *to = accumulate ? *to + sums[i][j] : sums[i][j];
            }
}

// ---- Calls.

// An argument from its 8 bytes.
template <class T> struct Slot;
template <> struct Slot<int> {
    static __device__ __forceinline__ int of(unsigned long long slot) { return (int)slot; }
};
template <> struct Slot<float> {
    static __device__ __forceinline__ float of(unsigned long long slot) { return __uint_as_float((u32)slot); }
};
template <class T> struct Slot<T *> {
    static __device__ __forceinline__ T *of(unsigned long long slot) { return (T *)slot; }
};
template <class T> struct Slot<const T &> {
    static __device__ __forceinline__ const T &of(unsigned long long slot) { return *(const T *)slot; }
};

template <int... I> struct Numbers {};
template <int N, int... I> struct Below : Below<N - 1, N - 1, I...> {};
template <int... I> struct Below<0, I...> {
    typedef Numbers<I...> all;
};

// Calls a function with the arguments of a call.
template <auto Body> struct Call;
template <class... A, void (*Body)(A...)> struct Call<Body> {
    static_assert(sizeof...(A) <= SLOTS, "more arguments than a call has places for");
    template <int... I> static __device__ __forceinline__ void with(const unsigned long long *slots, Numbers<I...>) {
        Body(Slot<A>::of(slots[I])...);
    }
    static __device__ __forceinline__ void run(const unsigned long long *slots) {
        with(slots, typename Below<sizeof...(A)>::all());
    }
};

#define TOGETHER(name, threads)                                                                                              \
    extern "C" __global__ void __launch_bounds__(threads) gang_##name(const __grid_constant__ Calls calls) {                 \
        Call<name>::run(calls.slots[find_call(calls)]);                                                                      \
    }

TOGETHER(adam_all, 256)
TOGETHER(add, 256)
TOGETHER(add_groups, 512)
TOGETHER(add_row, 256)
TOGETHER(add_rows, 256)
TOGETHER(add_slices, 256)
TOGETHER(attention_16, 128)
TOGETHER(attention_32, 128)
TOGETHER(attention_64, 256)
TOGETHER(attention_128, 256)
TOGETHER(attention_backward_keys_16, 128)
TOGETHER(attention_backward_keys_32, 128)
TOGETHER(attention_backward_keys_64, 256)
TOGETHER(attention_backward_keys_128, 256)
TOGETHER(attention_backward_queries_16, 128)
TOGETHER(attention_backward_queries_32, 128)
TOGETHER(attention_backward_queries_64, 256)
TOGETHER(attention_backward_queries_128, 256)
TOGETHER(bootstrap_targets, 256)
TOGETHER(blend_all, 256)
TOGETHER(clear_all, 256)
TOGETHER(copy_words, 256)
TOGETHER(fill_zero, 256)
TOGETHER(imitation_loss, 256)
TOGETHER(layer_norm, 256)
TOGETHER(layer_norm_backward, 256)
TOGETHER(policy_loss, 256)
TOGETHER(product, 256)
TOGETHER(regression, 256)
TOGETHER(relu, 256)
TOGETHER(relu_backward, 256)
TOGETHER(scale_all, 256)
TOGETHER(square_sum_of_all, 256)
TOGETHER(sum_of_parts, 256)
TOGETHER(sum_of_rows, 256)
TOGETHER(q_value_loss, 256)

// Head of the kernels of a gang: a launch works on the calls of the same kernel by many devices. Each block belongs to one call, and finds its place within
// that as if the call had been launched alone.

#define GANG
#define MEMBERS 64
#define SLOTS 16

// Calls of a kernel: the first block of each, and their number; the width of each grid; and the arguments of each, in 8 bytes.
struct Calls {
    int count;
    int first[MEMBERS + 1];
    int width[MEMBERS];
    unsigned long long slots[MEMBERS][SLOTS];
};

// Place of a block in the grid of its call, and the grid.
struct Place {
    uint3 block, grid;
    int call;
};

__device__ Place &own_place() {
    __shared__ Place place;
    return place;
}

// Finds the call of a block, before any thread goes on.
__device__ __forceinline__ int find_call(const Calls &calls) {
    if (threadIdx.x == 0 && threadIdx.y == 0) {
        int low = 0, high = calls.count - 1, block = blockIdx.x;
        while (low < high) {
            int middle = (low + high + 1) / 2;
            if (calls.first[middle] <= block) low = middle;
            else high = middle - 1;
        }
        int width = calls.width[low], own = block - calls.first[low], all = calls.first[low + 1] - calls.first[low];
        Place &place = own_place();
        place.call = low;
        place.block = make_uint3(own % width, own / width, 0);
        place.grid = make_uint3(width, all / width, 1);
    }
    __syncthreads();
    return own_place().call;
}

#define blockIdx (own_place().block)
#define gridDim (own_place().grid)

// SPDX-License-Identifier: GPL-2.0-only
//
// The kernel's part: threads of the class SCHED_EXT run when user space has chosen them for a core. All that are not running wait in one queue in order of
// deadline. While user space is late, that queue decides. Threads of other classes are not touched.
//
// An order of user space says which thread a core runs, and for how long orders are valid; an order without a core only renews that time. A core takes its chosen
// thread out of the queue; if that one sleeps, or none is chosen, the first of the queue runs. A thread keeps its core until another order, or, while user
// space is late, until a tick finds an earlier deadline. A thread that waits longer than the watchdog's time ends all of this: the kernel then treats the
// threads as ordinary ones.
//
// The kernel's types are declared here with the members that are used; the loader finds their places in the running kernel.

typedef int s32;
typedef unsigned int u32;
typedef long long s64;
typedef unsigned long long u64;

#define SEC(name) __attribute__((section(name), used))
#define KERNEL extern __attribute__((section(".ksyms")))
#define RELOCATED __attribute__((preserve_access_index))

#define CORES 256
#define THREADS 4096
#define QUEUE 0
#define LOCAL (1ULL << 63 | 2) // the queue of the core that dispatches
#define ENDLESS (~0ULL)
#define NO_DEADLINE (~0ULL >> 1)
#define ONLY_IF_IDLE 1 // ways to kick a core
#define PREEMPT 2
#define IS_QUEUED 1 // flag of a thread that can run
#define SWITCH_PARTIAL (1 << 3)

struct sched_ext_entity {
    u32 flags;
    u64 slice, dsq_vtime;
} RELOCATED;

struct task_struct {
    s32 pid;
    struct sched_ext_entity scx;
} RELOCATED;

struct bpf_iter_scx_dsq {
    u64 hidden[6];
};

struct sched_ext_ops {
    s32 (*select_cpu)(struct task_struct *, s32, u64);
    void (*enqueue)(struct task_struct *, u64);
    void (*dispatch)(s32, struct task_struct *);
    void (*tick)(struct task_struct *);
    s32 (*init)(void);
    u64 flags;
    u32 timeout_ms;
    char name[128];
};

KERNEL s32 scx_bpf_create_dsq(u64 queue, s32 node);
KERNEL void scx_bpf_dsq_insert_vtime(struct task_struct *thread, u64 queue, u64 slice, u64 place, u64 flags);
KERNEL _Bool scx_bpf_dsq_move_to_local(u64 queue);
KERNEL _Bool scx_bpf_dsq_move(struct bpf_iter_scx_dsq *at, struct task_struct *thread, u64 queue, u64 flags);
KERNEL s32 bpf_iter_scx_dsq_new(struct bpf_iter_scx_dsq *at, u64 queue, u64 flags);
KERNEL struct task_struct *bpf_iter_scx_dsq_next(struct bpf_iter_scx_dsq *at);
KERNEL void bpf_iter_scx_dsq_destroy(struct bpf_iter_scx_dsq *at);
KERNEL s32 scx_bpf_task_cpu(const struct task_struct *thread);
KERNEL void scx_bpf_kick_cpu(s32 core, u64 how);

static void *(*const lookup)(void *map, const void *key) = (void *)1;
static u64 (*const now_ns)(void) = (void *)5;

// Deadline of each thread's job in nanoseconds of CLOCK_MONOTONIC. User space writes it before it wakes the thread.
struct {
    s32 (*type)[1]; // hash
    s32 (*max_entries)[THREADS];
    s32 *key;
    u64 *value;
} deadlines SEC(".maps");

// What user space orders. A core beyond the last one only renews the time.
struct order {
    u32 core;
    s32 thread;
    u64 valid_ns;
};

static s32 chosen[CORES];
static u32 cores;
static u64 valid_until;

// The place of a core's choice. The kernel's verifier wants to see the bound, which the compiler must not take for known.
static s32 *place_of(u64 core) {
    asm volatile("" : "+r"(core));
    return chosen + (core & (CORES - 1));
}

static s32 chosen_for(u32 core) { return now_ns() < valid_until ? *place_of(core) : 0; }

// Whether a thread with an earlier deadline than this waits.
static _Bool has_earlier(u64 deadline) {
    struct bpf_iter_scx_dsq at;
    _Bool is_earlier = 0;
    if (!bpf_iter_scx_dsq_new(&at, QUEUE, 0)) {
        struct task_struct *first = bpf_iter_scx_dsq_next(&at);
        is_earlier = first && (s64)(first->scx.dsq_vtime - deadline) < 0;
    }
    bpf_iter_scx_dsq_destroy(&at);
    return is_earlier;
}

// Takes a waiting thread out of the queue and gives it to the dispatching core.
static _Bool take(s32 thread) {
    struct bpf_iter_scx_dsq at;
    struct task_struct *waiting;
    _Bool is_taken = 0;
    if (!bpf_iter_scx_dsq_new(&at, QUEUE, 0)) {
        while (!is_taken && (waiting = bpf_iter_scx_dsq_next(&at)))
            if (waiting->pid == thread) is_taken = scx_bpf_dsq_move(&at, waiting, LOCAL, 0);
    }
    bpf_iter_scx_dsq_destroy(&at);
    return is_taken;
}

SEC("struct_ops/select_cpu") s32 select_core(u64 *arguments) { return arguments[1]; }

SEC("struct_ops/enqueue") s32 enqueue(u64 *arguments) {
    struct task_struct *thread = (void *)arguments[0];
    s32 id = thread->pid;
    u64 *deadline = lookup(&deadlines, &id);
    scx_bpf_dsq_insert_vtime(thread, QUEUE, ENDLESS, deadline ? *deadline : NO_DEADLINE, arguments[1]);
    for (u32 core = 0; core < CORES && core < cores; core++)
        if (chosen_for(core) == id) {
            scx_bpf_kick_cpu(core, PREEMPT);
            return 0;
        }
    scx_bpf_kick_cpu(scx_bpf_task_cpu(thread), ONLY_IF_IDLE);
    return 0;
}

SEC("struct_ops/dispatch") s32 dispatch(u64 *arguments) {
    struct task_struct *before = (void *)arguments[1];
    s32 thread = chosen_for(arguments[0]);
    _Bool can_go_on = before && before->scx.flags & IS_QUEUED;
    // The thread that runs is in no queue. Without another one it goes on.
    if (can_go_on && (thread ? before->pid == thread : !has_earlier(before->scx.dsq_vtime))) {
        before->scx.slice = ENDLESS;
        return 0;
    }
    if (!thread || !take(thread)) scx_bpf_dsq_move_to_local(QUEUE);
    return 0;
}

// While user space is late, the deadline decides at each tick.
SEC("struct_ops/tick") s32 tick(u64 *arguments) {
    struct task_struct *thread = (void *)arguments[0];
    if (now_ns() >= valid_until && has_earlier(thread->scx.dsq_vtime)) thread->scx.slice = 0;
    return 0;
}

SEC("struct_ops.s/init") s32 start(u64 *arguments) { return scx_bpf_create_dsq(QUEUE, -1); }

SEC("syscall") s32 order(struct order *order) {
    u32 core = order->core;
    valid_until = now_ns() + order->valid_ns;
    if (core >= CORES) return 0;
    if (core >= cores) cores = core + 1;
    *place_of(core) = order->thread;
    scx_bpf_kick_cpu(core, PREEMPT);
    return 0;
}

SEC(".struct_ops.link") struct sched_ext_ops temponet = {
    .select_cpu = (void *)select_core,
    .enqueue = (void *)enqueue,
    .dispatch = (void *)dispatch,
    .tick = (void *)tick,
    .init = (void *)start,
    .flags = SWITCH_PARTIAL,
    .timeout_ms = 3000,
    .name = "temponet",
};

char terms[] SEC("license") = "GPL";

/*
 * Prints the schedule of a built-in set under a scheduler, a line for each decision: `schedule SET SCHEDULER DECISIONS`.
 * examples/schedules.rs prints the same lines over the Rust library, and ./test compares them.
 */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <temponet.h>

static void check(tn_result result, const char *what) {
    if (result != TN_RESULT_OK) {
        char message[512];
        tn_last_error(message, sizeof message);
        fprintf(stderr, "%s: %s: %s\n", what, tn_result_text(result), message);
        exit(1);
    }
}

#define CHECK(call) check(call, #call)

/* Execution time of a job: from half its worst case to all of it, by its number. */
static uint64_t takes(uint64_t wcet, uint64_t number) { return wcet - wcet / 2 * ((7 * number + 3) % 5) / 5; }

struct running {
    tn_job job;
    uint64_t end;
};

int main(int count, char **words) {
    if (count != 4) {
        fprintf(stderr, "usage: schedule SET SCHEDULER DECISIONS\n");
        return 2;
    }
    tn_set set;
    tn_ready ready;
    size_t tasks = 0, cores = 0;
    CHECK(tn_set_built_in(words[1], &set));
    CHECK(tn_set_task_count(set, &tasks));
    CHECK(tn_set_core_count(set, &cores));
    CHECK(tn_ready_new(set, words[2], (tn_model){0}, &ready));
    uint64_t *next_release = calloc(tasks, sizeof *next_release), *period = calloc(tasks, sizeof *period);
    tn_core *assigned = calloc(cores, sizeof *assigned);
    struct running *running = calloc(cores, sizeof *running);
    if (!next_release || !period || !assigned || !running) {
        return 1;
    }
    for (size_t task = 0; task < tasks; task++) {
        tn_task found;
        CHECK(tn_set_task(set, task, &found));
        next_release[task] = found.offset_ns;
        period[task] = found.period_ns ? found.period_ns : found.deadline_ns;
    }
    CHECK(tn_set_free(set));

    size_t busy = 0;
    uint64_t latest = UINT64_MAX;
    for (long decisions = strtol(words[3], NULL, 10); decisions > 0; decisions--) {
        uint64_t now = latest;
        for (size_t task = 0; task < tasks; task++) {
            now = next_release[task] < now ? next_release[task] : now;
        }
        for (size_t place = 0; place < busy; place++) {
            now = running[place].end < now ? running[place].end : now;
        }
        CHECK(tn_ready_advance(ready, now));
        for (size_t place = 0; place < busy; place++) {
            if (running[place].end == now) {
                CHECK(tn_ready_complete(ready, running[place].job, NULL));
            }
        }
        for (size_t task = 0; task < tasks; task++) {
            if (next_release[task] == now) {
                tn_job job;
                CHECK(tn_ready_release(ready, task, &job));
                next_release[task] += period[task];
            }
        }
        tn_decision decision;
        CHECK(tn_ready_decide(ready, assigned, cores, &decision));
        latest = decision.next_ns;
        printf("%" PRIu64, now);
        busy = 0;
        for (size_t core = 0; core < decision.cores; core++) {
            if (assigned[core].job.of == 0) {
                printf(" -");
                continue;
            }
            tn_job_state state;
            CHECK(tn_ready_job(ready, assigned[core].job, &state));
            uint64_t needs = takes(state.wcet_ns, state.number);
            uint64_t left = needs > state.executed_ns ? needs - state.executed_ns : 0;
            running[busy++] = (struct running){assigned[core].job, now + left};
            printf(" %zu.%" PRIu64, state.task, state.number);
        }
        for (size_t place = 0; place < decision.stopped; place++) {
            tn_stopped stopped;
            CHECK(tn_ready_stopped(ready, place, &stopped));
            printf(" stop:%zu.%" PRIu64, stopped.state.task, stopped.state.number);
        }
        printf(" next:%" PRIu64 "\n", latest);
    }
    CHECK(tn_ready_free(ready));
    free(next_release);
    free(period);
    free(assigned);
    free(running);
    return 0;
}

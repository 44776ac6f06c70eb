/*
 * The learned scheduler in a C program: report what happens, ask, dispatch.
 *
 * A real program waits for timers and for its workers. This one plays 100 ms of them: both tasks are periodic, and jobs
 * take less than their worst case. bindings/c/test builds it with CMake, as a user would, and compares what it prints.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <temponet.h>

#define MS UINT64_C(1000000)
#define END (100 * MS)

static const char TASKS[] = "[[task]]\n"
                            "name = \"control\"\n"
                            "period = \"10ms\"\n"
                            "wcet = \"4ms\"\n"
                            "[[task]]\n"
                            "name = \"vision\"\n"
                            "period = \"40ms\"\n"
                            "wcet = \"22ms\"\n";

static void check(tn_result result) {
    if (result != TN_RESULT_OK) {
        char message[512];
        tn_last_error(message, sizeof message);
        fprintf(stderr, "%s: %s\n", tn_result_text(result), message);
        exit(1);
    }
}

static uint64_t earlier(uint64_t a, uint64_t b) { return a < b ? a : b; }

int main(void) {
    /* Once, before real time begins: the tasks, the cores, the scheduler ("edf", "shield:srpt", …; NULL handle: the
       built-in model of the learned one). */
    tn_set set;
    tn_ready ready;
    check(tn_set_parse(TASKS, strlen(TASKS), TN_FORMAT_TOML, "robot.toml", &set));
    check(tn_ready_new(set, "temponet", (tn_model){0}, &ready));
    char names[2][32];
    for (size_t task = 0; task < 2; task++) {
        check(tn_set_task_name(set, task, names[task], sizeof names[task], NULL));
    }
    check(tn_set_free(set));

    const uint64_t period[2] = {10 * MS, 40 * MS}, takes[2] = {3 * MS, 20 * MS};
    uint64_t next_release[2] = {0, 0};
    uint64_t end = UINT64_MAX, latest = UINT64_MAX;
    tn_core core = {{0, 0}, 0, 0};
    for (;;) {
        /* 1. Sleep until something happens: a release, the end of the running job, or the date that the scheduler asked
              for. */
        uint64_t now = earlier(earlier(next_release[0], next_release[1]), earlier(end, latest));
        if (now >= END) {
            break;
        }
        /* 2. Report it: first the time, then completions, then releases. */
        check(tn_ready_advance(ready, now));
        if (end == now) {
            bool on_time = false;
            check(tn_ready_complete(ready, core.job, &on_time));
            if (!on_time) {
                fprintf(stderr, "late\n");
                return 1;
            }
        }
        for (size_t task = 0; task < 2; task++) {
            if (next_release[task] == now) {
                tn_job job;
                check(tn_ready_release(ready, task, &job));
                next_release[task] += period[task];
            }
        }
        /* 3. Ask, and dispatch. A real program sets a timer for next_ns and stops the jobs that tn_ready_stopped names. */
        tn_decision decision;
        check(tn_ready_decide(ready, &core, 1, &decision));
        latest = decision.next_ns;
        end = UINT64_MAX;
        if (core.job.of != 0) {
            tn_job_state state;
            check(tn_ready_job(ready, core.job, &state));
            end = now + takes[core.task] - state.executed_ns;
        }
        printf("%3" PRIu64 " ms  %s\n", now / MS, core.job.of != 0 ? names[core.task] : "idle");
    }
    check(tn_ready_free(ready));
    return 0;
}

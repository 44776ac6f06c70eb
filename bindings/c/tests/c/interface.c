/*
 * The interface in C11: a life of jobs, texts, errors of every kind, and memory. Every failed expectation is printed
 * with its line, and the exit code is 1. Run under valgrind and with the address sanitizer, it shows that nothing leaks
 * and that a stale handle reaches no memory.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <temponet.h>

static int failures = 0;

#define EXPECT(condition)                                                                                              \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            failures++;                                                                                                \
            fprintf(stderr, "line %d: %s\n", __LINE__, #condition);                                                    \
        }                                                                                                              \
    } while (0)

#define IS(call, expected) EXPECT((call) == TN_RESULT_##expected)

static const char SET[] = "[[task]]\nname = \"control\"\nperiod = \"10ms\"\nwcet = \"4ms\"\n"
                          "[[task]]\nname = \"vision\"\nperiod = \"40ms\"\nwcet = \"22ms\"\n";
static const char JSON[] = "{\"task\": [{\"name\": \"a\", \"period\": \"10ms\", \"wcet\": \"4ms\"}]}";
static const tn_model NO_MODEL = {0};
static const tn_job NO_JOB = {0, 0};

static tn_set the_set(void) {
    tn_set set = {1};
    IS(tn_set_parse(SET, strlen(SET), TN_FORMAT_AUTO, "two.toml", &set), OK);
    return set;
}

static void texts(void) {
    EXPECT(strlen(tn_version()) >= 5 && strlen(tn_kernel()) > 2);
    EXPECT(strcmp(tn_result_text(TN_RESULT_OK), "the call succeeded") == 0);
    EXPECT(strlen(tn_result_text(12345)) > 0);
    tn_set set = the_set();
    tn_text text = {0};
    IS(tn_set_analysis(set, &text), OK);
    size_t length = 0;
    IS(tn_text_copy(text, NULL, 0, &length), OK);
    EXPECT(length > 100);
    /* Exactly enough, so that the sanitizer sees a byte too much. */
    char *buffer = malloc(length + 1);
    EXPECT(buffer != NULL);
    IS(tn_text_copy(text, buffer, length, NULL), SMALL_BUFFER);
    IS(tn_text_copy(text, buffer, length + 1, NULL), OK);
    EXPECT(strlen(buffer) == length && buffer[0] == '{' && strstr(buffer, "\"guarantee\":{") != NULL);
    free(buffer);
    IS(tn_text_free(text), OK);
    IS(tn_text_copy(text, NULL, 0, &length), STALE_HANDLE);
    IS(tn_set_guarantee(set, &text), OK);
    IS(tn_text_free(text), OK);
    IS(tn_set_free(set), OK);
    IS(tn_set_parse(JSON, strlen(JSON), TN_FORMAT_AUTO, NULL, &set), OK);
    IS(tn_set_task_count(set, &length), OK);
    EXPECT(length == 1);
    IS(tn_set_free(set), OK);
}

static void errors(void) {
    tn_set set = {1};
    IS(tn_set_parse("nonsense = ", 11, TN_FORMAT_TOML, "bad.toml", &set), TASK_SET);
    EXPECT(set.value == 0);
    char message[256];
    size_t length = tn_last_error(message, sizeof message);
    EXPECT(length > 0 && strncmp(message, "bad.toml:1: ", 12) == 0);
    IS(tn_set_load("no-such-file.toml", &set), TASK_SET);
    IS(tn_set_load("no-such-kind", &set), TASK_SET);
    IS(tn_set_load(NULL, &set), POINTER);
    IS(tn_set_built_in("robott", &set), TASK_SET);
    tn_last_error(message, sizeof message);
    EXPECT(strstr(message, "robot") != NULL);
    IS(tn_set_parse("\xff", 1, TN_FORMAT_TOML, NULL, &set), NOT_UTF8);
    IS(tn_set_parse(SET, SIZE_MAX, TN_FORMAT_TOML, NULL, &set), TOO_LARGE);
    IS(tn_set_parse(SET, strlen(SET), 99, NULL, &set), OUT_OF_RANGE);
    tn_model model = {1};
    IS(tn_model_load("no-such-model", &model), MODEL);
    IS(tn_model_from_bytes((const uint8_t *)SET, sizeof SET, &model), MODEL);
    EXPECT(model.value == 0);
    set = the_set();
    tn_ready ready = {1};
    IS(tn_ready_new(set, "no-such-scheduler", NO_MODEL, &ready), SCHEDULER);
    IS(tn_ready_new(set, "edf", (tn_model){set.value}, &ready), WRONG_HANDLE);
    IS(tn_ready_new((tn_set){0}, "edf", NO_MODEL, &ready), NULL_HANDLE);
    IS(tn_ready_new((tn_set){UINT64_MAX}, "edf", NO_MODEL, &ready), STALE_HANDLE);
    EXPECT(ready.value == 0);
    IS(tn_ready_advance(ready, 1), NULL_HANDLE);
    IS(tn_ready_advance((tn_ready){set.value}, 1), WRONG_HANDLE);
    IS(tn_set_free(set), OK);
    IS(tn_set_free(set), STALE_HANDLE);
}

static void life(const char *scheduler, tn_model model) {
    tn_set set = the_set();
    tn_ready ready, other;
    IS(tn_ready_new(set, scheduler, model, &ready), OK);
    IS(tn_ready_new(set, "edf", NO_MODEL, &other), OK);
    IS(tn_set_free(set), OK);
    tn_job control = NO_JOB, vision = NO_JOB;
    IS(tn_ready_release(ready, 0, &control), OK);
    IS(tn_ready_release(ready, 1, &vision), OK);
    IS(tn_ready_release(ready, 2, &vision), OUT_OF_RANGE);
    IS(tn_ready_abort(other, control), FOREIGN_JOB);
    tn_core core;
    tn_decision decision;
    IS(tn_ready_decide(ready, &core, 0, &decision), SMALL_BUFFER);
    IS(tn_ready_decide(ready, NULL, 1, &decision), POINTER);
    IS(tn_ready_decide(ready, &core, 1, &decision), OK);
    EXPECT(core.job.of == ready.value && core.speed == 1000 && decision.cores == 1);
    EXPECT(decision.next_ns > 0 && decision.next_ns <= 10000000);
    tn_job first = core.job;
    IS(tn_ready_advance(ready, 3000000), OK);
    IS(tn_ready_advance(ready, 2999999), TIME);
    tn_job_state state;
    IS(tn_ready_job(ready, first, &state), OK);
    EXPECT(state.executed_ns == 3000000 && state.is_running && state.core == 0);
    bool on_time = false;
    IS(tn_ready_complete(ready, first, &on_time), OK);
    EXPECT(on_time);
    IS(tn_ready_complete(ready, first, &on_time), JOB_LEFT);
    IS(tn_ready_decide(ready, &core, 1, &decision), OK);
    EXPECT(core.job.of == ready.value && core.job.value != first.value);
    /* The job that is left is late at 40 ms. */
    IS(tn_ready_advance(ready, 40000000), OK);
    IS(tn_ready_decide(ready, &core, 1, &decision), OK);
    EXPECT(core.job.of == 0 && decision.stopped == 1 && decision.next_ns == UINT64_MAX);
    tn_stopped stopped;
    IS(tn_ready_stopped(ready, 0, &stopped), OK);
    EXPECT(stopped.is_late);
    IS(tn_ready_stopped(ready, 1, &stopped), OUT_OF_RANGE);
    IS(tn_ready_job(ready, stopped.job, &state), JOB_LEFT);
    tn_release release;
    IS(tn_ready_usual_release(ready, 1, 39000000, &release), OK);
    release.deadline_ns = 60000000;
    tn_job late_timer = NO_JOB;
    IS(tn_ready_release_with(ready, 1, &release, &late_timer), OK);
    IS(tn_ready_start(ready, "llf", NO_MODEL), OK);
    IS(tn_ready_decide(ready, &core, 1, &decision), OK);
    EXPECT(core.job.value == late_timer.value && core.task == 1);
    size_t count = 0;
    tn_job jobs[1];
    IS(tn_ready_jobs(ready, jobs, 1, &count), OK);
    EXPECT(count == 1 && jobs[0].value == late_timer.value);
    IS(tn_ready_free(ready), OK);
    IS(tn_ready_free(ready), STALE_HANDLE);
    IS(tn_ready_decide(ready, &core, 1, &decision), STALE_HANDLE);
    IS(tn_ready_free(other), OK);
}

int main(int count, char **words) {
    texts();
    errors();
    life("edf", NO_MODEL);
    life("shield:srpt", NO_MODEL);
    if (count > 1) {
        /* A weights file, from disk and from memory. */
        tn_model model;
        IS(tn_model_load(words[1], &model), OK);
        life("temponet", model);
        IS(tn_model_free(model), OK);
        IS(tn_model_free(model), STALE_HANDLE);
        FILE *file = fopen(words[1], "rb");
        if (file != NULL && fseek(file, 0, SEEK_END) == 0) {
            size_t size = (size_t)ftell(file);
            uint8_t *bytes = malloc(size);
            rewind(file);
            EXPECT(bytes != NULL && fread(bytes, 1, size, file) == size);
            IS(tn_model_from_bytes(bytes, size, &model), OK);
            bytes[size / 2] ^= 1;
            tn_model damaged;
            IS(tn_model_from_bytes(bytes, size, &damaged), MODEL);
            free(bytes);
            fclose(file);
            life("temponet", model);
            IS(tn_model_free(model), OK);
        }
    }
    printf("%s\n", failures == 0 ? "fine" : "failed");
    return failures == 0 ? 0 : 1;
}

/* Callbacks on threads of their own, traced as ROS 2 would be: a timer of 20 ms computes for 2 ms and publishes an image, which calls a
 * detector that computes for 5 ms. Without ROS: only its tracepoints. Each thread has the name of its callback, as far as the kernel keeps it.
 * At the end it prints, for each callback: releases, those that completed within the period, and the longest processor time in ns.
 *
 *     cc -O1 -I. callbacks.c -o callbacks -llttng-ust -ldl -lpthread
 *     ./callbacks [ROUNDS [BUSY_MS [DELAY_MS]]]
 *
 * With BUSY_MS, two more timers of 200 ms compute for that time each. DELAY_MS passes before the first release.
 */
#define _GNU_SOURCE
#define TRACEPOINT_DEFINE
#define TRACEPOINT_CREATE_PROBES
#include "ros2_tracepoints.h"
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>

#define ADDRESS(number) ((void *)(uintptr_t)(number))
#define PUBLISHER ADDRESS(0x51)
#define MS 1000000LL

/* A callback and what became of its jobs. */
struct callback {
    const char *name;
    void *address;
    long long period, work;
    long rounds, met;
    long long longest;
};

static struct callback camera = {"/camera: timer 20ms", ADDRESS(0x100), 20 * MS, 2 * MS, 300, 0, 0};
static struct callback detector = {"/perception/detector: /image", ADDRESS(0x200), 20 * MS, 5 * MS, 300, 0, 0};
static struct callback mapper = {"/mapper: timer 200ms", ADDRESS(0x300), 200 * MS, 0, 0, 0, 0};
static struct callback planner = {"/planner: timer 200ms", ADDRESS(0x400), 200 * MS, 0, 0, 0, 0};

static sem_t image;
static long long begin;

static long long read_clock(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return now.tv_sec * 1000 * MS + now.tv_nsec;
}

/* Runs job number `round`, which was released at `release`. */
static void run(struct callback *callback, long round, long long release) {
    tracepoint(ros2, callback_start, callback->address, 0);
    long long before = read_clock(CLOCK_THREAD_CPUTIME_ID), used;
    while ((used = read_clock(CLOCK_THREAD_CPUTIME_ID) - before) < callback->work) {
    }
    if (callback == &camera)
        tracepoint(ros2, rcl_publish, PUBLISHER, ADDRESS(round));
    tracepoint(ros2, callback_end, callback->address);
    callback->longest = used > callback->longest ? used : callback->longest;
    callback->met += read_clock(CLOCK_MONOTONIC) <= release + callback->period;
}

static void *timer(void *argument) {
    struct callback *callback = argument;
    prctl(PR_SET_NAME, callback->name);
    for (long round = 0; round < callback->rounds; round++) {
        long long release = begin + round * callback->period;
        struct timespec date = {release / (1000 * MS), release % (1000 * MS)};
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &date, NULL);
        run(callback, round, release);
        if (callback == &camera)
            sem_post(&image);
    }
    return NULL;
}

static void *subscription(void *argument) {
    struct callback *callback = argument;
    prctl(PR_SET_NAME, callback->name);
    for (long round = 0; round < callback->rounds; round++) {
        sem_wait(&image);
        run(callback, round, begin + round * callback->period);
    }
    return NULL;
}

static void add_timer(long number, const char *node, const char *space, struct callback *callback) {
    tracepoint(ros2, rcl_node_init, ADDRESS(0x10 + number), node, space);
    tracepoint(ros2, rcl_timer_init, ADDRESS(0x30 + number), callback->period);
    tracepoint(ros2, rclcpp_timer_callback_added, ADDRESS(0x30 + number), callback->address);
    tracepoint(ros2, rclcpp_timer_link_node, ADDRESS(0x30 + number), ADDRESS(0x10 + number));
}

int main(int count, char **arguments) {
    long rounds = count > 1 ? atol(arguments[1]) : 300, busy = count > 2 ? atol(arguments[2]) : 0;
    camera.rounds = detector.rounds = rounds;
    mapper.work = planner.work = busy * MS;
    mapper.rounds = planner.rounds = busy > 0 ? rounds / 10 : 0;
    begin = read_clock(CLOCK_MONOTONIC) + (count > 3 ? atol(arguments[3]) : 50) * MS;
    sem_init(&image, 0, 0);
    add_timer(1, "camera", "/", &camera);
    tracepoint(ros2, rcl_publisher_init, PUBLISHER, ADDRESS(0x11), "/image");
    tracepoint(ros2, rcl_node_init, ADDRESS(0x12), "detector", "/perception");
    tracepoint(ros2, rcl_subscription_init, ADDRESS(0x61), ADDRESS(0x12), "/image");
    tracepoint(ros2, rclcpp_subscription_init, ADDRESS(0x61), ADDRESS(0x62));
    tracepoint(ros2, rclcpp_subscription_callback_added, ADDRESS(0x62), detector.address);
    struct callback *all[] = {&camera, &detector, &mapper, &planner};
    int used = busy > 0 ? 4 : 2;
    if (busy > 0) {
        add_timer(3, "mapper", "/", &mapper);
        add_timer(4, "planner", "/", &planner);
    }
    pthread_t threads[4];
    for (int at = 0; at < used; at++)
        pthread_create(&threads[at], NULL, all[at] == &detector ? subscription : timer, all[at]);
    for (int at = 0; at < used; at++)
        pthread_join(threads[at], NULL);
    for (int at = 0; at < used; at++)
        printf("ran\t%s\t%ld\t%ld\t%lld\n", all[at]->name, all[at]->rounds, all[at]->met, all[at]->longest);
    return 0;
}

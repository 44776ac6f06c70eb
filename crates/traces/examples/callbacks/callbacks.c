/* Two callbacks on two threads, traced as ROS 2 would be: a timer of 20 ms computes for 2 ms and publishes an image, which calls a
 * detector that computes for 5 ms. Without ROS: only its tracepoints.
 *
 *     cc -O1 -I. callbacks.c -o callbacks -llttng-ust -ldl -lpthread
 */
#define _GNU_SOURCE
#define TRACEPOINT_DEFINE
#define TRACEPOINT_CREATE_PROBES
#include "ros2_tracepoints.h"
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>

#define ADDRESS(number) ((void *)(uintptr_t)(number))
#define CAMERA ADDRESS(0x100)
#define DETECTOR ADDRESS(0x200)
#define PUBLISHER ADDRESS(0x51)

static sem_t image;
static int rounds;

static long used_us(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec * 1000000L + now.tv_nsec / 1000;
}

static void compute(long us) {
    long begin = used_us();
    while (used_us() - begin < us) {
    }
}

static void *camera(void *unused) {
    struct timespec next;
    prctl(PR_SET_NAME, "camera");
    clock_gettime(CLOCK_MONOTONIC, &next);
    for (int round = 0; round < rounds; round++) {
        next.tv_nsec += 20000000;
        if (next.tv_nsec >= 1000000000) {
            next.tv_nsec -= 1000000000;
            next.tv_sec++;
        }
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
        tracepoint(ros2, callback_start, CAMERA, 0);
        compute(2000);
        tracepoint(ros2, rcl_publish, PUBLISHER, ADDRESS(round));
        tracepoint(ros2, callback_end, CAMERA);
        sem_post(&image);
    }
    return unused;
}

static void *detector(void *unused) {
    prctl(PR_SET_NAME, "detector");
    for (int round = 0; round < rounds; round++) {
        sem_wait(&image);
        tracepoint(ros2, callback_start, DETECTOR, 0);
        compute(5000);
        tracepoint(ros2, callback_end, DETECTOR);
    }
    return unused;
}

int main(int count, char **arguments) {
    rounds = count > 1 ? atoi(arguments[1]) : 300;
    sem_init(&image, 0, 0);
    tracepoint(ros2, rcl_node_init, ADDRESS(0x11), "camera", "/");
    tracepoint(ros2, rcl_node_init, ADDRESS(0x12), "detector", "/perception");
    tracepoint(ros2, rcl_publisher_init, PUBLISHER, ADDRESS(0x11), "/image");
    tracepoint(ros2, rcl_timer_init, ADDRESS(0x31), 20000000);
    tracepoint(ros2, rclcpp_timer_callback_added, ADDRESS(0x31), CAMERA);
    tracepoint(ros2, rclcpp_timer_link_node, ADDRESS(0x31), ADDRESS(0x11));
    tracepoint(ros2, rcl_subscription_init, ADDRESS(0x61), ADDRESS(0x12), "/image");
    tracepoint(ros2, rclcpp_subscription_init, ADDRESS(0x61), ADDRESS(0x62));
    tracepoint(ros2, rclcpp_subscription_callback_added, ADDRESS(0x62), DETECTOR);
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, camera, NULL);
    pthread_create(&threads[1], NULL, detector, NULL);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    return 0;
}

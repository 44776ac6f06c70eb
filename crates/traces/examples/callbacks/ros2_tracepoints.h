/* Tracepoints of LTTng-UST with the names and fields of ros2_tracing. */
#undef TRACEPOINT_PROVIDER
#define TRACEPOINT_PROVIDER ros2
#undef TRACEPOINT_INCLUDE
#define TRACEPOINT_INCLUDE "./ros2_tracepoints.h"

#if !defined(ROS2_TRACEPOINTS_H) || defined(TRACEPOINT_HEADER_MULTI_READ)
#define ROS2_TRACEPOINTS_H
#include <lttng/tracepoint.h>
#include <stdint.h>

#define HANDLE(name, value) ctf_integer_hex(const void *, name, value)

TRACEPOINT_EVENT(ros2, rcl_node_init, TP_ARGS(const void *, node, const char *, name, const char *, space),
    TP_FIELDS(HANDLE(node_handle, node) HANDLE(rmw_handle, 0) ctf_string(node_name, name) ctf_string(namespace, space)))
TRACEPOINT_EVENT(ros2, rcl_publisher_init, TP_ARGS(const void *, publisher, const void *, node, const char *, topic),
    TP_FIELDS(HANDLE(publisher_handle, publisher) HANDLE(node_handle, node) ctf_string(topic_name, topic)
        ctf_integer(size_t, queue_depth, 10)))
TRACEPOINT_EVENT(ros2, rcl_subscription_init, TP_ARGS(const void *, subscription, const void *, node, const char *, topic),
    TP_FIELDS(HANDLE(subscription_handle, subscription) HANDLE(node_handle, node) ctf_string(topic_name, topic)
        ctf_integer(size_t, queue_depth, 10)))
TRACEPOINT_EVENT(ros2, rclcpp_subscription_init, TP_ARGS(const void *, handle, const void *, object),
    TP_FIELDS(HANDLE(subscription_handle, handle) HANDLE(subscription, object)))
TRACEPOINT_EVENT(ros2, rclcpp_subscription_callback_added, TP_ARGS(const void *, object, const void *, callback_),
    TP_FIELDS(HANDLE(subscription, object) HANDLE(callback, callback_)))
TRACEPOINT_EVENT(ros2, rcl_timer_init, TP_ARGS(const void *, timer, int64_t, period_),
    TP_FIELDS(HANDLE(timer_handle, timer) ctf_integer(int64_t, period, period_)))
TRACEPOINT_EVENT(ros2, rclcpp_timer_callback_added, TP_ARGS(const void *, timer, const void *, callback_),
    TP_FIELDS(HANDLE(timer_handle, timer) HANDLE(callback, callback_)))
TRACEPOINT_EVENT(ros2, rclcpp_timer_link_node, TP_ARGS(const void *, timer, const void *, node),
    TP_FIELDS(HANDLE(timer_handle, timer) HANDLE(node_handle, node)))
TRACEPOINT_EVENT(ros2, callback_start, TP_ARGS(const void *, callback_, int, intra),
    TP_FIELDS(HANDLE(callback, callback_) ctf_integer(int, is_intra_process, intra)))
TRACEPOINT_EVENT(ros2, callback_end, TP_ARGS(const void *, callback_), TP_FIELDS(HANDLE(callback, callback_)))
TRACEPOINT_EVENT(ros2, rcl_publish, TP_ARGS(const void *, publisher, const void *, message_),
    TP_FIELDS(HANDLE(publisher_handle, publisher) HANDLE(message, message_)))

#endif
#include <lttng/tracepoint-event.h>

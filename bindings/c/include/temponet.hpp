/*
 * TempoNet in C++: owners for the handles of temponet.h, and exceptions for its errors. C++17, header only.
 *
 * An owner frees its handle when it goes; it can be moved and not copied. Threads may use owners as temponet.h says of
 * their handles.
 */
#ifndef TEMPONET_HPP
#define TEMPONET_HPP

#include "temponet.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace temponet {

/* A call that failed. what() is the message of the library. */
class Error : public std::runtime_error {
public:
    Error(tn_result result, const std::string &message) : std::runtime_error(message), result_(result) {}

    tn_result result() const noexcept { return result_; }

private:
    tn_result result_;
};

/* Message of the last error of this thread. */
inline std::string last_error() {
    std::string message(tn_last_error(nullptr, 0), '\0');
    tn_last_error(message.data(), message.size() + 1);
    return message;
}

/* Throws unless the call succeeded. */
inline void check(tn_result result) {
    if (result != TN_RESULT_OK) {
        throw Error(result, last_error());
    }
}

/* Owner of a handle. */
template <typename Handle, tn_result (*Free)(Handle)> class Owner {
public:
    Owner() noexcept = default;
    explicit Owner(Handle handle) noexcept : handle_(handle) {}
    Owner(Owner &&other) noexcept : handle_(other.release()) {}
    Owner &operator=(Owner &&other) noexcept {
        if (this != &other) {
            Free(handle_);
            handle_ = other.release();
        }
        return *this;
    }
    Owner(const Owner &) = delete;
    Owner &operator=(const Owner &) = delete;
    ~Owner() { Free(handle_); }

    Handle get() const noexcept { return handle_; }

    /* Gives the handle away: the caller frees it. */
    Handle release() noexcept { return std::exchange(handle_, Handle{0}); }

protected:
    Handle handle_{0};
};

/* Content of a text of the library, which is freed. */
inline std::string taken(tn_text text) {
    Owner<tn_text, tn_text_free> owner(text);
    std::size_t length = 0;
    check(tn_text_copy(text, nullptr, 0, &length));
    std::string content(length, '\0');
    check(tn_text_copy(text, content.data(), length + 1, nullptr));
    return content;
}

/* A model of the learned scheduler. Without one, the built-in model is meant. */
class Model : public Owner<tn_model, tn_model_free> {
public:
    Model() noexcept = default;

    static Model built_in() {
        Model model;
        check(tn_model_built_in(&model.handle_));
        return model;
    }

    static Model load(const std::string &path) {
        Model model;
        check(tn_model_load(path.c_str(), &model.handle_));
        return model;
    }
};

/* A task set. */
class Set : public Owner<tn_set, tn_set_free> {
public:
    static Set built_in(const std::string &name) {
        Set set;
        check(tn_set_built_in(name.c_str(), &set.handle_));
        return set;
    }

    static Set load(const std::string &path) {
        Set set;
        check(tn_set_load(path.c_str(), &set.handle_));
        return set;
    }

    static Set parse(std::string_view text, tn_format format = TN_FORMAT_AUTO, const std::string &name = "unnamed") {
        Set set;
        check(tn_set_parse(text.data(), text.size(), format, name.c_str(), &set.handle_));
        return set;
    }

    std::size_t task_count() const { return number(tn_set_task_count); }
    std::size_t core_count() const { return number(tn_set_core_count); }

    tn_task task(std::size_t index) const {
        tn_task task;
        check(tn_set_task(handle_, index, &task));
        return task;
    }

    std::string task_name(std::size_t index) const {
        std::size_t length = 0;
        check(tn_set_task_name(handle_, index, nullptr, 0, &length));
        std::string name(length, '\0');
        check(tn_set_task_name(handle_, index, name.data(), length + 1, nullptr));
        return name;
    }

    std::size_t find_task(const std::string &name) const {
        std::size_t index = 0;
        check(tn_set_find_task(handle_, name.c_str(), &index));
        return index;
    }

    /* JSON objects. */
    std::string guarantee() const { return report(tn_set_guarantee); }
    std::string analysis() const { return report(tn_set_analysis); }
    std::string notes() const { return report(tn_set_notes); }

    std::string write(tn_format format) const {
        tn_text text{0};
        check(tn_set_write(handle_, format, &text));
        return taken(text);
    }

private:
    Set() noexcept = default;

    std::size_t number(tn_result (*call)(tn_set, std::size_t *)) const {
        std::size_t count = 0;
        check(call(handle_, &count));
        return count;
    }

    std::string report(tn_result (*call)(tn_set, tn_text *)) const {
        tn_text text{0};
        check(call(handle_, &text));
        return taken(text);
    }
};

inline bool operator==(tn_job a, tn_job b) noexcept { return a.of == b.of && a.value == b.value; }
inline bool operator!=(tn_job a, tn_job b) noexcept { return !(a == b); }

/* What to do until the next decision. It refers to memory of the ready jobs and is valid until their next decision. */
class Decision {
public:
    /* Job on a core; none if it idles. */
    std::optional<tn_job> job(std::size_t core) const {
        const tn_core &found = cores_->at(core);
        return found.job.of == 0 ? std::nullopt : std::optional<tn_job>(found.job);
    }

    const std::vector<tn_core> &cores() const noexcept { return *cores_; }
    /* Latest date of the next decision; UINT64_MAX if only a release or a completion can change anything. */
    std::uint64_t next_ns() const noexcept { return summary_.next_ns; }
    std::size_t stopped() const noexcept { return summary_.stopped; }
    std::size_t late() const noexcept { return summary_.late; }

private:
    friend class Ready;
    Decision(const std::vector<tn_core> &cores, tn_decision summary) : cores_(&cores), summary_(summary) {}

    const std::vector<tn_core> *cores_;
    tn_decision summary_;
};

/* The ready jobs of a running system, with their scheduler. */
class Ready : public Owner<tn_ready, tn_ready_free> {
public:
    explicit Ready(const Set &set, const std::string &scheduler = "temponet", const Model &model = Model())
        : cores_(set.core_count()) {
        check(tn_ready_new(set.get(), scheduler.c_str(), model.get(), &handle_));
    }

    /* Exchanges the scheduler. */
    void start(const std::string &scheduler, const Model &model = Model()) {
        check(tn_ready_start(handle_, scheduler.c_str(), model.get()));
    }

    void advance(std::uint64_t now_ns) { check(tn_ready_advance(handle_, now_ns)); }

    tn_job release(std::size_t task) {
        tn_job job;
        check(tn_ready_release(handle_, task, &job));
        return job;
    }

    /* What the task says of a job, to be changed and passed to release(). */
    tn_release usual_release(std::size_t task, std::uint64_t release_ns) const {
        tn_release release;
        check(tn_ready_usual_release(handle_, task, release_ns, &release));
        return release;
    }

    tn_job release(std::size_t task, const tn_release &release) {
        tn_job job;
        check(tn_ready_release_with(handle_, task, &release, &job));
        return job;
    }

    /* Whether the job is on time. */
    bool complete(tn_job job) {
        bool on_time = false;
        check(tn_ready_complete(handle_, job, &on_time));
        return on_time;
    }

    void abort(tn_job job) { check(tn_ready_abort(handle_, job)); }
    void skip(std::size_t task) { check(tn_ready_skip(handle_, task)); }
    void set_executed(tn_job job, std::uint64_t executed_ns) {
        check(tn_ready_set_executed(handle_, job, executed_ns));
    }

    /* Allocates nothing once the load has been seen. */
    Decision decide() {
        tn_decision summary;
        check(tn_ready_decide(handle_, cores_.data(), cores_.size(), &summary));
        return Decision(cores_, summary);
    }

    tn_stopped stopped(std::size_t index) const {
        tn_stopped stopped;
        check(tn_ready_stopped(handle_, index, &stopped));
        return stopped;
    }

    tn_job late(std::size_t index) const {
        tn_job job;
        check(tn_ready_late(handle_, index, &job));
        return job;
    }

    tn_job_state job(tn_job job) const {
        tn_job_state state;
        check(tn_ready_job(handle_, job, &state));
        return state;
    }

    std::vector<tn_job> jobs() const {
        std::size_t count = 0;
        check(tn_ready_jobs(handle_, nullptr, 0, &count));
        std::vector<tn_job> jobs(count);
        check(tn_ready_jobs(handle_, jobs.data(), count, &count));
        return jobs;
    }

    std::uint64_t now_ns() const {
        std::uint64_t now = 0;
        check(tn_ready_now(handle_, &now));
        return now;
    }

    /* JSON object. */
    std::string counters() const {
        tn_text text{0};
        check(tn_ready_counters(handle_, &text));
        return taken(text);
    }

private:
    std::vector<tn_core> cores_;
};

} // namespace temponet

#endif

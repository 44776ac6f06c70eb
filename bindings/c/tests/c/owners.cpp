// The owners of temponet.hpp in C++17: they free once, move, and throw.
#include <cstdio>
#include <cstring>
#include <temponet.hpp>
#include <type_traits>

static int failures = 0;

#define EXPECT(condition)                                                                                              \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            failures++;                                                                                                \
            std::fprintf(stderr, "line %d: %s\n", __LINE__, #condition);                                               \
        }                                                                                                              \
    } while (0)

template <typename Call> static tn_result result_of(Call call) {
    try {
        call();
        return TN_RESULT_OK;
    } catch (const temponet::Error &error) {
        EXPECT(std::strlen(error.what()) > 0);
        return error.result();
    }
}

static_assert(!std::is_copy_constructible_v<temponet::Set> && std::is_nothrow_move_constructible_v<temponet::Set>);

int main() {
    using namespace temponet;
    EXPECT(result_of([] { Set::built_in("robott"); }) == TN_RESULT_TASK_SET);
    EXPECT(result_of([] { Set::parse("[[task]]", TN_FORMAT_TOML, "bad.toml"); }) == TN_RESULT_TASK_SET);
    EXPECT(result_of([] { Model::load("no-such-model"); }) == TN_RESULT_MODEL);

    Set set = Set::parse("[[task]]\nname = \"control\"\nperiod = \"10ms\"\nwcet = \"4ms\"\n");
    EXPECT(set.task_count() == 1 && set.core_count() == 1);
    EXPECT(set.task_name(0) == "control" && set.find_task("control") == 0);
    EXPECT(set.task(0).period_ns == 10000000 && set.task(0).wcet_ns == 4000000);
    EXPECT(set.guarantee().find("\"role\":\"slack_stealing\"") != std::string::npos);
    EXPECT(set.analysis().find("\"guarantee\"") != std::string::npos && set.notes().empty());
    EXPECT(Set::parse(set.write(TN_FORMAT_JSON)).task_name(0) == "control");
    EXPECT(result_of([&] { set.task(1); }) == TN_RESULT_OUT_OF_RANGE);

    Ready ready(set, "edf");
    Set moved = std::move(set);
    EXPECT(set.get().value == 0 && moved.task_count() == 1);
    moved = Set::built_in("robot");
    EXPECT(moved.task_count() > 1);

    tn_job job = ready.release(0);
    Decision decision = ready.decide();
    EXPECT(decision.job(0) && *decision.job(0) == job && decision.next_ns() == 10000000);
    ready.advance(3000000);
    EXPECT(ready.now_ns() == 3000000 && ready.job(job).executed_ns == 3000000);
    EXPECT(ready.jobs().size() == 1 && ready.complete(job));
    EXPECT(result_of([&] { ready.complete(job); }) == TN_RESULT_JOB_LEFT);
    tn_release release = ready.usual_release(0, 2000000);
    release.deadline_ns = 5000000;
    job = ready.release(0, release);
    Model model = Model::built_in();
    ready.start("temponet", model);
    EXPECT(ready.decide().job(0).value() == job);
    EXPECT(ready.counters().front() == '{');
    ready.advance(5000000);
    decision = ready.decide();
    EXPECT(!decision.job(0) && decision.stopped() == 1 && ready.stopped(0).job == job && ready.stopped(0).is_late);
    ready.skip(0);

    tn_ready raw = ready.get();
    {
        Ready taken = std::move(ready);
        EXPECT(taken.get().value == raw.value);
    }
    EXPECT(tn_ready_advance(raw, 6000000) == TN_RESULT_STALE_HANDLE);
    EXPECT(result_of([&] { ready.advance(1); }) == TN_RESULT_NULL_HANDLE);
    std::printf("%s\n", failures == 0 ? "fine" : "failed");
    return failures == 0 ? 0 : 1;
}

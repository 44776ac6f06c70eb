//! Contract of the rules that servers use: on lists of requests that are not preempted they do what a plain simulation
//! of their definitions does, with and without cancellation of what is late.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use temponet_sched::build;
use temponet_sim::{Recorder, simulate};
use temponet_task::{Arrival, Estimate, ExecutionModel, ListedJob, Preemption, Task, TaskSet, Time};

/// A request, in nanoseconds.
#[derive(Clone, Copy, Debug)]
struct Request {
    release: u64,
    deadline: u64,
    length: u64,
    median: u64,
}

/// Worst-case execution time of all requests, in nanoseconds.
const LONGEST: u64 = 200_000_000;

/// Requests whose lengths span two orders of magnitude, at about twice the capacity.
fn drawn(rng: &mut Pcg64, cores: u64) -> Vec<Request> {
    let mut now = 0;
    let mut request = |_| {
        now += rng.random_range(1..20_000_000 / cores);
        let length = rng.random_range(1_000_000..10_000_000) * if rng.random_bool(0.2) { 15 } else { 1 };
        let median = ((length as f64 * rng.random_range(0.4..2.5)) as u64).min(LONGEST);
        let deadline = now + rng.random_range(1..10) * 17_000_000 + rng.random_range(1..1_000_000);
        Request { release: now, deadline, length, median }
    };
    (0..200).map(&mut request).collect()
}

fn set(requests: &[Request], cores: usize, preemption: Preemption) -> TaskSet {
    let longest = Time(LONGEST);
    let job = |request: &Request| {
        let Request { release, deadline, length, median } = *request;
        ListedJob::new(Time(release), Time(deadline), Time(length))
            .with_wcet(longest)
            .with_bcet(Time(1))
            .with_estimate(Estimate::new(Time(median), Time(median)))
    };
    let jobs: Vec<ListedJob> = requests.iter().map(job).collect();
    let task = Task::periodic("request", Time(1_000_000_000), longest)
        .with_bcet(Time(1))
        .with_arrival(Arrival::Listed(jobs.into()))
        .with_execution(ExecutionModel::Wcet)
        .with_preemption(preemption);
    TaskSet::new("requests", vec![task], cores)
}

/// Chooses among the waiting requests at a time; none leaves the core idle.
type Rule = fn(u64, &[Request]) -> Option<usize>;

/// Index of the least key among those that pass.
fn least<K: PartialOrd>(
    waiting: &[Request],
    passes: impl Fn(&Request) -> bool,
    key: impl Fn(&Request) -> K,
) -> Option<usize> {
    let mut best: Option<usize> = None;
    for (place, request) in waiting.iter().enumerate().filter(|(_, request)| passes(request)) {
        if best.is_none_or(|best| key(request) < key(&waiting[best])) {
            best = Some(place);
        }
    }
    best
}

/// Which requests a server takes in when they come.
#[derive(Clone, Copy)]
enum Admission {
    All,
    /// Those that come while all cores are taken wait, at most this many.
    Queue(usize),
    /// Those that would be on time by the medians of all before them.
    OnTime,
}

impl Admission {
    fn admits(self, new: Request, now: u64, cores: usize, running: &[(u64, Request)], waiting: &[Request]) -> bool {
        match self {
            Admission::All => true,
            Admission::Queue(queue) => running.len() + waiting.len() < cores + queue,
            Admission::OnTime => {
                // One that has reached its median may take as long as any.
                let left = |(start, request): &(u64, Request)| {
                    let longest = if now - start < request.median { request.median } else { LONGEST };
                    longest - (now - start)
                };
                let mut free: Vec<u64> = running.iter().map(|run| now + left(run)).collect();
                free.resize(cores, now);
                for request in waiting.iter().chain([&new]) {
                    let first = (0..cores).min_by_key(|core| free[*core]).unwrap();
                    free[first] += request.median;
                    if request.release == new.release {
                        return free[first] <= new.deadline;
                    }
                }
                unreachable!("the new one is the last")
            }
        }
    }
}

/// Starts of all requests by the definition of a rule, in the order of their releases.
fn naive(requests: &[Request], cores: usize, cancels: bool, admission: Admission, rule: Rule) -> Vec<Option<u64>> {
    let mut starts = vec![None; requests.len()];
    let place_of = |request: &Request| requests.iter().position(|other| other.release == request.release).unwrap();
    let (mut waiting, mut running): (Vec<Request>, Vec<(u64, Request)>) = (Vec::new(), Vec::new());
    let mut coming = requests.iter().copied().peekable();
    loop {
        let ends = running.iter().map(|(end, _)| *end);
        let dates =
            ends.chain(waiting.iter().map(|request| request.deadline)).chain(coming.peek().map(|next| next.release));
        let Some(now) = dates.min() else { return starts };
        running.retain(|(end, _)| *end > now);
        waiting.retain(|request| request.deadline > now);
        while let Some(request) = coming.next_if(|request| request.release <= now) {
            let served: Vec<_> =
                running.iter().map(|(_, served)| (starts[place_of(served)].unwrap(), *served)).collect();
            if admission.admits(request, now, cores, &served, &waiting) {
                waiting.push(request);
            }
        }
        while running.len() < cores
            && let Some(chosen) = rule(now, &waiting)
        {
            let request = waiting.remove(chosen);
            starts[place_of(&request)] = Some(now);
            let end = now + request.length;
            running.push((if cancels { end.min(request.deadline) } else { end }, request));
        }
    }
}

fn is_on_time(request: &Request, now: u64) -> bool {
    now + request.median <= request.deadline
}

#[test]
fn rules_of_servers_are_their_definitions() {
    let first: Rule = |_, waiting| least(waiting, |_| true, |request| request.release);
    let by_deadline: Rule =
        |now, waiting| least(waiting, |request| is_on_time(request, now), |request| request.deadline);
    let by_length: Rule = |now, waiting| least(waiting, |request| is_on_time(request, now), |request| request.median);
    let by_ratio: Rule =
        |now, waiting| least(waiting, |_| true, |request| -((now - request.release) as f64) / request.median as f64);
    let by_rank: Rule =
        |now, waiting| least(waiting, |_| true, |request| (now - request.release < 40_000_000, request.median));
    let skipping: Rule =
        |now, waiting| least(waiting, |_| true, |request| (!is_on_time(request, now), request.deadline));
    let last: Rule = |_, waiting| least(waiting, |_| true, |request| -(request.release as i64));
    let rules: [(&str, Admission, Rule); 11] = [
        ("fcfs", Admission::All, first),
        ("reject-when-busy", Admission::Queue(0), first),
        ("reject-when-busy:queue=3", Admission::Queue(3), first),
        ("early-reject", Admission::OnTime, first),
        ("lifo", Admission::All, last),
        ("hrrn", Admission::All, by_ratio),
        ("rank:patience=40ms", Admission::All, by_rank),
        ("edf-skip", Admission::All, skipping),
        ("edf-skip:q=0.5", Admission::All, skipping),
        ("edf-shed", Admission::All, by_deadline),
        ("sjf-shed", Admission::All, by_length),
    ];
    let mut rng = Pcg64::seed_from_u64(40);
    let (mut left_out, mut started) = (0, 0);
    for round in 0..40 {
        let cores = [1, 2, 5][round % 3];
        let requests = drawn(&mut rng, cores as u64);
        for preemption in [Preemption::None, Preemption::Cancel] {
            let set = set(&requests, cores, preemption);
            for (name, admission, rule) in rules {
                let mut recorder = Recorder::until(Time::NEVER);
                let horizon = Time(requests.last().unwrap().deadline + 1_000_000_000);
                simulate(&set, 0, horizon, &mut *build(name).unwrap(), &mut recorder).unwrap();
                recorder.jobs.sort_by_key(|job| job.number);
                let found: Vec<Option<u64>> = recorder.jobs.iter().map(|job| job.start.map(|start| start.0)).collect();
                let expected = naive(&requests, cores, preemption == Preemption::Cancel, admission, rule);
                assert_eq!(found, expected, "{name}, {cores} cores, {preemption:?}, round {round}");
                started += found.iter().flatten().count();
                left_out += found.iter().filter(|start| start.is_none()).count();
            }
        }
    }
    assert!(started > 20_000 && left_out > 20_000, "{started} and {left_out}");
}

/// Without estimates, `edf-shed` learns from completed requests how long they take, and meets more than plain EDF.
#[test]
fn lengths_are_learned_where_nothing_is_known() {
    let mut rng = Pcg64::seed_from_u64(41);
    let (mut learned, mut unknown) = (0, 0);
    for _ in 0..12 {
        let requests = drawn(&mut rng, 2);
        let mut set = set(&requests, 2, Preemption::None);
        let blind = requests.iter().map(|request| {
            ListedJob::new(Time(request.release), Time(request.deadline), Time(request.length))
                .with_wcet(Time(LONGEST))
                .with_bcet(Time(1))
        });
        set.system.tasks_mut()[0].arrival = Arrival::Listed(blind.collect::<Vec<_>>().into());
        let met = |name: &str| {
            let horizon = Time(requests.last().unwrap().deadline + 1_000_000_000);
            let metrics =
                simulate(&set, 0, horizon, &mut *build(name).unwrap(), &mut temponet_sim::Unobserved).unwrap();
            metrics.jobs.met
        };
        learned += met("edf-shed");
        unknown += met("edf");
    }
    assert!(learned > unknown + unknown / 10, "{learned} and {unknown}");
}

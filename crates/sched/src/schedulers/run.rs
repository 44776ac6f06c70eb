//! RUN, reduction to uniprocessor: tasks are packed into servers of at most one core each. Scheduling the times in
//! which a server must *not* run (its dual) is equivalent to scheduling the server. There are fewer duals, and they are
//! packed again, until one core is left to schedule with EDF. Optimal at U ≤ m (implicit deadlines) with about two
//! preemptions per job; identical to partitioned EDF where that is enough.
//!
//! Reference: Regnier, Lima, Massa, Levin and Brandt, RUN: Optimal Multiprocessor Real-Time Scheduling via Reduction to
//! Uniprocessor, RTSS 2011. Idle time is divided among the servers; beyond full load the rates are scaled down: best
//! effort. Budgets are whole nanoseconds: what rounding takes from a window is added to the next one. The idle time
//! covers that error. A set that leaves its servers less than a few nanoseconds of idle time in their shortest window
//! is run by DP-Wrap instead. Free cores take waiting jobs by deadline.
//! Ties: servers by index, jobs by earlier release, then lower task index.

use std::cmp::Reverse;

use temponet_task::{Arrival, Assignment, Event, JobId, NotApplicable, Scheduler, System, SystemView, Task, Tie, Time};

use crate::schedulers::dp_wrap::DpWrap;

/// Rates at or above this value count as one.
const UNIT: f64 = 1.0 - 1e-9;

#[derive(Default)]
pub(crate) struct Run {
    /// Servers of all levels; a server comes after its clients.
    servers: Vec<Server>,
    /// Number of servers of the first level, whose clients are tasks.
    first_level: usize,
    server_of_task: Vec<usize>,
    /// End of the window of each task: its deadline or its next release.
    window_of_task: Vec<Time>,
    last: Time,
    /// Runs sets that leave too little idle time for rounding.
    exact: Option<DpWrap>,
    jobs: Vec<Ready>,
    /// Jobs whose server does not run them now.
    waiting: Vec<(Time, Tie, JobId)>,
    chosen: Vec<JobId>,
    /// By server index: whether the server already has a job to run, and whether a window begins now.
    is_served: Vec<bool>,
    begins: Vec<bool>,
}

/// A ready job: whether its server runs, deadline, tie, server, id.
type Ready = (Reverse<bool>, Time, Tie, usize, JobId);

/// Idle time, in nanoseconds, that a server needs in its shortest window so that rounding never costs a deadline.
const ROOM: f64 = 32.0;

struct Server {
    /// Tasks on the first level; above it, servers, represented by their duals.
    clients: Vec<usize>,
    rate: f64,
    /// Whether the server always runs; there is no level above it.
    is_root: bool,
    end: Time,
    /// Time left in this window in which the server must not run.
    dual_left: Time,
    /// Part of the dual's time that rounding has kept back so far, in nanoseconds.
    credit: f64,
    runs: bool,
    /// The client whose dual runs; only above the first level.
    paused: Option<usize>,
}

impl Server {
    fn new(clients: Vec<usize>, rate: f64) -> Server {
        let (end, dual_left) = (Time::ZERO, Time::ZERO);
        Server { clients, rate, is_root: rate >= UNIT, end, dual_left, credit: 0.0, runs: false, paused: None }
    }

    /// Begins a window. The time that an unfinished window had planned beyond `now` is taken back.
    fn begin_window(&mut self, now: Time, end: Time) {
        let planned = (1.0 - self.rate) * self.end.saturating_sub(now).0 as f64;
        let missing = if self.end > now { self.dual_left.0 as f64 - planned } else { 0.0 };
        self.credit += missing + (1.0 - self.rate) * (end - now).0 as f64;
        // The tolerance keeps whole sums whole.
        let whole = (self.credit + 1e-6).floor().clamp(0.0, (end - now).0 as f64);
        (self.end, self.dual_left) = (end, Time(whole as u64));
        self.credit -= whole;
    }
}

/// Packs rates into bins of at most one, largest rate first, each into the first bin with room.
fn pack(rates: &[f64]) -> Vec<Vec<usize>> {
    let mut order: Vec<usize> = (0..rates.len()).collect();
    order.sort_by(|a, b| rates[*b].total_cmp(&rates[*a]));
    let mut bins: Vec<(f64, Vec<usize>)> = Vec::new();
    for index in order {
        match bins.iter_mut().find(|(sum, _)| sum + rates[index] <= 1.0 + 1e-12) {
            Some((sum, bin)) => {
                *sum += rates[index];
                bin.push(index);
            }
            None => bins.push((rates[index], vec![index])),
        }
    }
    bins.into_iter().map(|(_, bin)| bin).collect()
}

/// Returns the servers of all levels, the first level first, and the number of servers on the first level.
fn reduce(rates: &[f64], cores: usize) -> (Vec<Server>, usize) {
    let total: f64 = rates.iter().sum();
    let scale = (cores as f64 / total).min(1.0);
    let rates: Vec<f64> = rates.iter().map(|rate| rate * scale).collect();
    let bins = pack(&rates);
    let spare = (cores as f64 - total * scale).max(0.0);
    let gaps = bins.len() as f64 - total * scale;
    let part = if gaps > 0.0 { (spare / gaps).min(1.0) } else { 0.0 };
    let rate_of = |bin: &Vec<usize>| bin.iter().map(|client| rates[*client]).sum::<f64>();
    let mut servers: Vec<Server> = Vec::new();
    for bin in bins {
        let rate = rate_of(&bin);
        servers.push(Server::new(bin, rate + (1.0 - rate) * part));
    }
    let first_level = servers.len();
    let mut level = 0..first_level;
    loop {
        let open: Vec<usize> = level.filter(|at| !servers[*at].is_root).collect();
        if open.is_empty() {
            return (servers, first_level);
        }
        let duals: Vec<f64> = open.iter().map(|at| 1.0 - servers[*at].rate).collect();
        let begin = servers.len();
        for bin in pack(&duals) {
            let rate = bin.iter().map(|client| duals[*client]).sum();
            servers.push(Server::new(bin.iter().map(|client| open[*client]).collect(), rate));
        }
        if servers.len() - begin >= open.len() {
            // Only rounding can keep a level from shrinking. Its servers become roots and run whenever a core is free.
            servers[begin..].iter_mut().for_each(|server| server.is_root = true);
        }
        level = begin..servers.len();
    }
}

/// Longest time from a release of the task to the end of its window.
fn window(task: &Task) -> Time {
    task.period().map_or(task.deadline, |period| period.min(task.deadline))
}

impl Scheduler for Run {
    fn start(&mut self, system: &System) -> Result<(), NotApplicable> {
        let rate = |task: &Task| (task.wcet.0 as f64 / window(task).0 as f64).min(1.0);
        (self.servers, self.first_level) = reduce(&system.tasks().iter().map(rate).collect::<Vec<_>>(), system.cores());
        self.server_of_task = vec![0; system.tasks().len()];
        for (at, server) in self.servers[..self.first_level].iter().enumerate() {
            server.clients.iter().for_each(|task| self.server_of_task[*task] = at);
        }
        self.window_of_task = system.tasks().iter().map(|task| task.offset).collect();
        self.last = Time::ZERO;
        let fits = system.tasks().iter().map(rate).sum::<f64>() <= system.cores() as f64 * (1.0 + 1e-12);
        let is_tight = |server: &Server| {
            let needed: f64 = server.clients.iter().map(|client| rate(&system.tasks()[*client])).sum();
            let shortest = server.clients.iter().map(|client| window(&system.tasks()[*client])).min();
            (server.rate - needed) * shortest.unwrap_or_default().0 as f64 <= ROOM
        };
        let servers = &self.servers[..self.first_level];
        // Servers with a core to themselves need no idle time.
        let mut open = servers.iter().filter(|server| !server.is_root);
        self.exact = (fits && open.any(is_tight)).then(DpWrap::default);
        match &mut self.exact {
            Some(exact) => exact.start(system),
            None => Ok(()),
        }
    }

    fn decide(&mut self, view: &SystemView<'_>, assignment: &mut Assignment) {
        if let Some(exact) = &mut self.exact {
            return exact.decide(view, assignment);
        }
        self.spend(view.now);
        self.begin_windows(view);
        let wake = self.run_servers(view.now);
        self.jobs.clear();
        for (id, job) in view.ready() {
            let at = self.server_of_task[job.task];
            self.jobs.push((Reverse(self.servers[at].runs), job.deadline, job.tie(), at, id));
        }
        // First one job for each running server, then the waiting jobs.
        self.jobs.sort_unstable();
        self.is_served.clear();
        self.is_served.resize(self.first_level, false);
        self.waiting.clear();
        self.chosen.clear();
        for (Reverse(runs), deadline, tie, at, id) in &self.jobs {
            if *runs && !std::mem::replace(&mut self.is_served[*at], true) {
                self.chosen.push(*id);
            } else {
                self.waiting.push((*deadline, *tie, *id));
            }
        }
        self.waiting.sort_unstable();
        self.chosen.extend(self.waiting.iter().map(|(.., id)| *id));
        self.chosen.truncate(view.cores());
        assignment.place(view, &self.chosen);
        if !view.active.is_empty() {
            assignment.wake_at(wake);
        }
    }

    /// Every ready job gets a share of every interval, so the number of switches grows with the number of ready jobs.
    fn most_ready(&self) -> usize {
        crate::shared::fluid::MOST_SHARED
    }
}

impl Run {
    /// Charges the duals that ran with the time since the last decision.
    fn spend(&mut self, now: Time) {
        let passed = now - self.last;
        self.last = now;
        for at in self.first_level..self.servers.len() {
            if let (true, Some(paused)) = (self.servers[at].runs, self.servers[at].paused) {
                let server = &mut self.servers[paused];
                server.credit -= passed.saturating_sub(server.dual_left).0 as f64;
                server.dual_left = server.dual_left.saturating_sub(passed);
            }
        }
    }

    fn begin_windows(&mut self, view: &SystemView<'_>) {
        let now = view.now;
        let mut begins = std::mem::take(&mut self.begins);
        begins.clear();
        begins.resize(self.servers.len(), false);
        for event in view.events {
            if let Event::Released(id) = *event {
                let job = view.job(id);
                let task = view.task_of(job);
                self.window_of_task[job.task] = match task.arrival {
                    Arrival::Periodic { period } => job.release + period,
                    _ => job.release + window(task),
                };
                begins[self.server_of_task[job.task]] = true;
            }
        }
        for at in 0..self.servers.len() {
            let server = &self.servers[at];
            let is_above = at >= self.first_level;
            begins[at] |= server.end <= now || (is_above && server.clients.iter().any(|client| begins[*client]));
            if !begins[at] {
                continue;
            }
            let ends = server.clients.iter().map(|client| match is_above {
                true => self.servers[*client].end,
                false => {
                    // No job was released: an idle window of the usual length.
                    let idle = now + window(&view.system.tasks()[*client]);
                    let end = &mut self.window_of_task[*client];
                    *end = if *end <= now { idle } else { *end };
                    *end
                }
            });
            let end = ends.min().unwrap_or(Time::NEVER);
            self.servers[at].begin_window(now, end);
        }
        self.begins = begins;
    }

    /// Decides, from the top level down, which servers run. Returns the date of the next decision.
    fn run_servers(&mut self, now: Time) -> Time {
        let mut wake = self.servers.iter().map(|server| server.end).min().unwrap_or(Time::NEVER);
        for server in &mut self.servers {
            server.runs = server.is_root;
        }
        for at in (self.first_level..self.servers.len()).rev() {
            let runs = self.servers[at].runs;
            // If rounding left no dual with time, the one from which rounding took most continues.
            let key = |client: usize| {
                let server = &self.servers[client];
                let is_done = server.dual_left == Time::ZERO;
                (is_done, if is_done { -server.credit } else { server.end.0 as f64 })
            };
            let order = |a: &&usize, b: &&usize| {
                let ((a_done, a_key), (b_done, b_key)) = (key(**a), key(**b));
                a_done.cmp(&b_done).then(a_key.total_cmp(&b_key)).then(a.cmp(b))
            };
            let paused = self.servers[at].clients.iter().min_by(order).copied().filter(|_| runs);
            self.servers[at].paused = paused;
            for place in 0..self.servers[at].clients.len() {
                let client = self.servers[at].clients[place];
                self.servers[client].runs = Some(client) != paused;
            }
            if let Some(client) = paused.filter(|client| self.servers[*client].dual_left > Time::ZERO) {
                wake = wake.min(now + self.servers[client].dual_left);
            }
        }
        wake
    }
}

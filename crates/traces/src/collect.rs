//! Events to the jobs of tasks: by thread, by callback or by marker.

use std::collections::{HashMap, VecDeque};

use crate::event::{Event, NO_PRIORITY, Name, Names, What};
use crate::job_log::{Done, JobLog};
use crate::ros::{Handle, Ros};
use crate::threads::{Clock, Threads};
use crate::{NamePattern, TaskBy};

/// What a task is known by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Key {
    /// A thread under one of its names.
    Thread(i32, Name),
    /// A marker of a process.
    Marker(i32, Name),
    Callback(Handle),
}

/// A task that was found.
pub(crate) struct Collected {
    pub key: Key,
    pub name: String,
    pub log: JobLog,
    /// Priority of the kernel.
    pub priority: i32,
    /// Thread that ran its last job.
    pub tid: i32,
}

/// A job that has ended.
pub(crate) struct Row {
    pub task: usize,
    pub number: u64,
    pub tid: i32,
    pub job: Done,
}

/// Most tasks.
const MOST_TASKS: usize = 1 << 14;
/// Most markers that are open in a thread.
const DEEPEST: usize = 1 << 10;
/// Most numbered jobs of a task that are not complete.
const MOST_OPEN: usize = 1 << 10;

/// A marker or a callback that has begun.
#[derive(Clone, Copy)]
struct Begun {
    key: Key,
    time: u64,
    clock: Clock,
    losses: u64,
}

/// A job whose stretches come one by one.
#[derive(Clone, Copy)]
struct Stretches {
    number: u64,
    start: u64,
    end: u64,
    executed: u64,
    count: u32,
    first_cpu: u32,
    last_cpu: u32,
}

/// A slice that is a job as a whole.
#[derive(Clone, Copy)]
struct Slice {
    key: Key,
    start: u64,
    end: u64,
    cpu: u32,
}

/// Slices of a thread that are in no other one, in the order of time, as far as they may still be within one to come:
/// programs write a slice when it begins or when it ends.
#[derive(Default)]
struct Outermost {
    slices: VecDeque<Slice>,
    /// End of those that are complete.
    done_until: u64,
}

impl Outermost {
    /// Adds a slice. Returns one that is complete by now, and counts those that are part of others.
    fn add(&mut self, slice: Slice, nested: &mut u64) -> Option<Slice> {
        let within = self.slices.back().is_some_and(|last| slice.start >= last.start && slice.start < last.end);
        if within || slice.start < self.done_until {
            *nested += 1;
            return None;
        }
        while self.slices.back().is_some_and(|last| last.start >= slice.start) {
            self.slices.pop_back();
            *nested += 1;
        }
        self.slices.push_back(slice);
        let complete = if self.slices.len() > DEEPEST { self.slices.pop_front() } else { None };
        self.done_until = complete.map_or(self.done_until, |slice| slice.end);
        complete
    }
}

/// What is taken down on the way.
#[derive(Default)]
pub(crate) struct Counts {
    pub losses: u64,
    /// Lost events, as far as the trace says how many.
    pub lost_events: u64,
    /// Markers or callbacks within others, whose time is part of theirs.
    pub nested: u64,
    /// Ends without a beginning.
    pub unopened: u64,
    /// Callbacks on threads that the trace does not name.
    pub without_thread: u64,
    /// Jobs outside of the times asked for.
    pub outside: u64,
    pub tasks_left_out: u64,
    pub callbacks: u64,
    pub markers: u64,
    /// Slices that are jobs as a whole, and those that are stretches of numbered jobs.
    pub slices: u64,
    pub stretches: u64,
}

/// Collects jobs.
pub(crate) struct Collector<'a> {
    pub threads: Threads,
    pub ros: Ros,
    pub tasks: Vec<Collected>,
    pub counts: Counts,
    by_key: HashMap<Key, Option<usize>>,
    /// Names of tasks so far.
    taken: HashMap<String, u32>,
    begun: HashMap<i32, Vec<Begun>>,
    stretches: HashMap<Key, Vec<Stretches>>,
    /// Slices without a number that may still turn out to be part of one that is written later, by process and thread.
    whole: HashMap<(i32, i32), Outermost>,
    pattern: Option<&'a NamePattern>,
    by: TaskBy,
    /// Dates from which and up to which jobs count.
    pub window: (u64, u64),
    /// Jobs that have ended since the last look, if they are of interest one by one.
    pub rows: Option<Vec<Row>>,
    /// Numbered jobs that end where the trace ends.
    cut_off: u64,
}

impl<'a> Collector<'a> {
    pub fn new(by: TaskBy, pattern: Option<&'a NamePattern>, keeps_rows: bool) -> Collector<'a> {
        Collector {
            threads: Threads::default(),
            ros: Ros::default(),
            tasks: Vec::new(),
            counts: Counts::default(),
            by_key: HashMap::new(),
            taken: HashMap::new(),
            begun: HashMap::new(),
            stretches: HashMap::new(),
            whole: HashMap::new(),
            pattern,
            by,
            window: (0, u64::MAX),
            rows: keeps_rows.then(Vec::new),
            cut_off: 0,
        }
    }

    /// Takes an event.
    pub fn take(&mut self, event: Event, names: &Names) {
        let Event { time, cpu, tid, pid, what } = event;
        match what {
            What::Switch { from, leaving, to } => {
                let job = self.threads.switch(time, cpu, from, leaving, to);
                if let (Some(job), TaskBy::Thread) = (job, self.by) {
                    let Some(task) = self.task(Key::Thread(job.tid, job.name), job.tid, job.priority, names) else {
                        return;
                    };
                    if job.is_touched {
                        self.tasks[task].log.dropped += 1;
                        return;
                    }
                    let log = &mut self.tasks[task].log;
                    log.unwoken += u64::from(!job.was_woken);
                    log.waited += u64::from(job.waited);
                    let done = Done {
                        release: job.release,
                        start: job.start,
                        end: job.end,
                        executed: job.executed,
                        preemptions: job.preemptions,
                        first_cpu: job.first_cpu,
                        last_cpu: job.last_cpu,
                    };
                    self.done(task, job.tid, &done);
                }
            }
            What::Wake { who, is_new } => self.threads.wake(time, who, is_new),
            What::Start(tid) => self.threads.start(tid),
            What::Lost { count } => {
                self.counts.losses += 1;
                self.counts.lost_events = self.counts.lost_events.saturating_add(count.unwrap_or(0));
                self.threads.lose(time);
            }
            What::Begin(name) => {
                self.counts.markers += 1;
                self.begin(Key::Marker(pid, name), time, cpu, tid);
            }
            What::End(name) => self.end(name.map(|name| Key::Marker(pid, name)), time, cpu, tid, names),
            What::CallbackStart(callback) => {
                self.counts.callbacks += 1;
                self.begin(Key::Callback((pid, callback)), time, cpu, self.thread_of(tid, cpu));
            }
            What::CallbackEnd(callback) => {
                self.end(Some(Key::Callback((pid, callback))), time, cpu, self.thread_of(tid, cpu), names);
            }
            What::Publish { publisher, layer } => {
                self.publish((pid, publisher), layer, self.thread_of(tid, cpu), names)
            }
            What::Ros(what) => self.ros.initialize(pid, *what),
            What::Slice { name, job, length } => {
                match job {
                    Some(_) => self.counts.stretches += 1,
                    None => self.counts.slices += 1,
                }
                self.slice(Key::Marker(pid, name), job, (time, length), cpu, tid, names);
            }
        }
    }

    /// Thread of an event; without one, a stand-in for the processor, since two threads do not share one.
    fn thread_of(&self, tid: i32, cpu: u32) -> i32 {
        if tid >= 0 { tid } else { -2 - i32::try_from(cpu).unwrap_or(0) }
    }

    /// Whether tasks are what an event with this key is about.
    fn is_wanted(&self, key: Key) -> bool {
        matches!(
            (key, self.by),
            (Key::Thread(..), TaskBy::Thread)
                | (Key::Marker(..), TaskBy::Marker)
                | (Key::Callback(_), TaskBy::Callback)
        )
    }

    fn begin(&mut self, key: Key, time: u64, cpu: u32, tid: i32) {
        if !self.is_wanted(key) {
            return;
        }
        self.counts.without_thread += u64::from(tid < -1);
        let clock = self.threads.clock(time, cpu, tid);
        let open = self.begun.entry(tid).or_default();
        if open.len() < DEEPEST {
            open.push(Begun { key, time, clock, losses: self.counts.losses });
        }
    }

    fn end(&mut self, key: Option<Key>, time: u64, cpu: u32, tid: i32, names: &Names) {
        if key.is_some_and(|key| !self.is_wanted(key)) || key.is_none() && self.by != TaskBy::Marker {
            return;
        }
        let open = self.begun.entry(tid).or_default();
        let at = match key {
            Some(key) => open.iter().rposition(|begun| begun.key == key),
            None => open.len().checked_sub(1),
        };
        let Some(at) = at else {
            self.counts.unopened += 1;
            return;
        };
        let begun = open[at];
        // What began within and did not end.
        open.truncate(at);
        if at > 0 {
            self.counts.nested += 1;
            return;
        }
        let clock = self.threads.clock(time, cpu, tid);
        let priority = self.threads.priority(tid);
        let Some(task) = self.task(begun.key, tid, priority, names) else { return };
        let executed = clock.since(begun.clock).filter(|_| begun.losses == self.counts.losses);
        let Some(executed) = executed else {
            self.tasks[task].log.dropped += 1;
            return;
        };
        let (first_cpu, last_cpu) = (begun.clock.cpu, clock.cpu);
        let done =
            Done { release: begun.time, start: begun.time, end: time, executed, preemptions: 0, first_cpu, last_cpu };
        self.done(task, tid, &done);
    }

    /// Takes down a publication from within a callback.
    fn publish(&mut self, publisher: Handle, layer: crate::event::Layer, tid: i32, names: &Names) {
        if self.by != TaskBy::Callback {
            return;
        }
        let Some(outermost) = self.begun.get(&tid).and_then(|open| open.first()).map(|begun| begun.key) else {
            self.ros.outside += 1;
            return;
        };
        let priority = self.threads.priority(tid);
        if let Some(task) = self.task(outermost, tid, priority, names) {
            self.ros.publish(task, publisher, layer);
        }
    }

    fn slice(&mut self, key: Key, job: Option<u64>, (time, length): (u64, u64), cpu: u32, tid: i32, names: &Names) {
        if self.by != TaskBy::Marker {
            return;
        }
        let end = time.saturating_add(length);
        let Some(number) = job else {
            let Key::Marker(pid, _) = key else { return };
            let slice = Slice { key, start: time, end, cpu };
            let complete = match self.whole.len() < MOST_TASKS || self.whole.contains_key(&(pid, tid)) {
                true => self.whole.entry((pid, tid)).or_default().add(slice, &mut self.counts.nested),
                false => Some(slice),
            };
            if let Some(slice) = complete {
                self.slice_done(slice, tid, names);
            }
            return;
        };
        // Stretches of one job: it is complete when a later one of its task has begun, since they are written in order
        // of their ends.
        let Some(task) = self.task(key, -1, NO_PRIORITY, names) else { return };
        let open = self.stretches.entry(key).or_default();
        match open.iter_mut().find(|job| job.number == number) {
            Some(job) => {
                job.start = job.start.min(time);
                job.end = job.end.max(end);
                job.executed = job.executed.saturating_add(length);
                job.count = job.count.saturating_add(1);
                job.last_cpu = cpu;
            }
            None => {
                let first =
                    Stretches { number, start: time, end, executed: length, count: 1, first_cpu: cpu, last_cpu: cpu };
                open.push(first);
            }
        }
        if open.len() > MOST_OPEN {
            let complete = open.remove(0);
            self.stretch_done(task, complete);
        }
    }

    fn slice_done(&mut self, Slice { key, start, end, cpu }: Slice, tid: i32, names: &Names) {
        let Some(task) = self.task(key, tid, NO_PRIORITY, names) else { return };
        let done =
            Done { release: start, start, end, executed: end - start, preemptions: 0, first_cpu: cpu, last_cpu: cpu };
        self.done(task, tid, &done);
    }

    fn stretch_done(&mut self, task: usize, job: Stretches) {
        let Stretches { start, end, executed, count, first_cpu, last_cpu, .. } = job;
        let done = Done { release: start, start, end, executed, preemptions: count - 1, first_cpu, last_cpu };
        self.done(task, -1, &done);
    }

    /// Completes what has no end of its own.
    pub fn finish(&mut self, names: &Names) {
        let mut slices: Vec<(Slice, i32)> = Vec::new();
        for ((_, tid), outermost) in std::mem::take(&mut self.whole) {
            slices.extend(outermost.slices.into_iter().map(|slice| (slice, tid)));
        }
        slices.sort_by_key(|(slice, tid)| (slice.start, slice.end, *tid));
        slices.into_iter().for_each(|(slice, tid)| self.slice_done(slice, tid, names));
        let mut rest: Vec<(usize, Stretches)> = Vec::new();
        for (key, open) in std::mem::take(&mut self.stretches) {
            if let Some(Some(task)) = self.by_key.get(&key) {
                rest.extend(open.into_iter().map(|job| (*task, job)));
            }
        }
        rest.sort_by_key(|(task, job)| (job.start, *task, job.number));
        // What ends with the trace may have gone on.
        let last = rest.iter().map(|(_, job)| job.end).max();
        for (task, job) in rest {
            match Some(job.end) == last {
                true => self.cut_off += 1,
                false => self.stretch_done(task, job),
            }
        }
    }

    /// Number of jobs that have not ended, and their processor time by a date as far as it is known.
    pub fn unfinished(&self, now: u64) -> (u64, u64) {
        match self.by {
            TaskBy::Thread => self.threads.unfinished(now),
            _ => (self.cut_off + self.begun.values().map(|open| open.len() as u64).sum::<u64>(), 0),
        }
    }

    /// A job is complete.
    fn done(&mut self, task: usize, tid: i32, job: &Done) {
        if job.release < self.window.0 || job.end > self.window.1 {
            self.counts.outside += 1;
            return;
        }
        let log = &mut self.tasks[task].log;
        log.add(job);
        if let Some(rows) = &mut self.rows {
            rows.push(Row { task, number: log.count - 1, tid, job: *job });
        }
    }

    /// Returns the task with a key; none if its name is not asked for.
    fn task(&mut self, key: Key, tid: i32, priority: i32, names: &Names) -> Option<usize> {
        if let Some(known) = self.by_key.get(&key) {
            let task = &mut self.tasks[(*known)?];
            task.tid = tid;
            if priority != NO_PRIORITY {
                task.priority = priority;
            }
            return *known;
        }
        let name = match key {
            Key::Thread(_, name) | Key::Marker(_, name) => names.text(name).to_string(),
            Key::Callback(callback) => self.ros.name(callback),
        };
        if self.pattern.is_some_and(|pattern| !pattern.matches(&name)) || self.tasks.len() >= MOST_TASKS {
            self.counts.tasks_left_out += 1;
            if self.by_key.len() < 4 * MOST_TASKS {
                self.by_key.insert(key, None);
            }
            return None;
        }
        let name = self.own_name(&name, tid, key);
        self.by_key.insert(key, Some(self.tasks.len()));
        self.tasks.push(Collected { key, name, log: JobLog::new(), priority, tid });
        Some(self.tasks.len() - 1)
    }

    /// Returns a name that no other task has: that of threads gets their number.
    fn own_name(&mut self, name: &str, tid: i32, key: Key) -> String {
        let visible = temponet_wording::visible(name.trim()).into_owned();
        let plain = if visible.is_empty() { "<unnamed>".to_string() } else { visible };
        let mut own = plain.clone();
        let count = self.taken.entry(plain.clone()).or_insert(0);
        *count += 1;
        if *count > 1 {
            own = match key {
                Key::Thread(..) => format!("{plain}-{tid}"),
                _ => format!("{plain} ({count})"),
            };
            while self.taken.contains_key(&own) {
                own.push('\'');
            }
            self.taken.insert(own.clone(), 1);
        }
        own
    }
}

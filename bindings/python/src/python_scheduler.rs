//! Schedulers written in Python. They are slow: every decision takes the interpreter lock and makes Python objects of
//! the ready jobs.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};
use temponet_sched::{Entry, Kind};
use temponet_task::{Assignment, CoreId, JobId, NotApplicable, Scheduler, System, SystemView};

use crate::{calls, errors};

/// A job as far as a scheduler may know it. Times are in nanoseconds.
#[pyclass(frozen, get_all, module = "temponet")]
pub struct Job {
    /// Number that names the job while it is active.
    id: u32,
    /// Name of the task.
    task: Py<PyAny>,
    /// Number of the job within its task, from 0.
    number: u64,
    /// Criticality level.
    criticality: u8,
    /// Value of meeting the deadline.
    value: f64,
    /// Release time.
    release: u64,
    /// Absolute deadline.
    deadline: u64,
    /// Worst-case execution time.
    wcet: u64,
    /// Best-case execution time.
    bcet: u64,
    /// Estimate of the execution time: median and ninth decile; none if the job carries no estimate.
    estimate: Option<(u64, u64)>,
    /// Work done so far.
    executed: u64,
    /// Remaining work at the wcet, overhead included.
    remaining: u64,
    /// Time to the deadline minus the remaining work.
    slack: i64,
    /// Core that the job is on; none if it is not running.
    core: Option<u32>,
}

#[pymethods]
impl Job {
    fn __repr__(&self, py: Python<'_>) -> String {
        let task = self.task.bind(py).str().map(|text| text.to_string()).unwrap_or_default();
        format!("Job({task}#{}, deadline={}, remaining={})", self.number, self.deadline, self.remaining)
    }
}

/// The state at a decision point. Times are in nanoseconds.
#[pyclass(frozen, get_all, module = "temponet")]
pub struct View {
    /// Current time.
    now: u64,
    /// Number of cores.
    cores: usize,
    /// Ready jobs, running ones included, in the order of ties.
    jobs: Vec<Py<Job>>,
}

/// A scheduler over a Python object, for one run.
struct PythonScheduler {
    object: Py<PyAny>,
    /// Names of the tasks as Python texts.
    tasks: Vec<Py<PyAny>>,
}

/// Returns the entry of the roster for a Python object. Each run decides with a deep copy of it; an object that cannot
/// be copied is an error.
pub fn own(name: String, object: Bound<'_, PyAny>) -> PyResult<Entry> {
    let copy_of = |object: &Bound<'_, PyAny>| -> PyResult<Py<PyAny>> {
        Ok(object.py().import("copy")?.call_method1("deepcopy", (object,))?.unbind())
    };
    copy_of(&object).map_err(|error| {
        errors::input(format!("the scheduler {name:?} cannot be copied, and every run decides with a copy: {error}"))
    })?;
    let object = Arc::new(object.unbind());
    let copy = move || -> Box<dyn Scheduler> {
        let copied = Python::attach(|py| copy_of(object.bind(py)));
        match copied {
            Ok(object) => Box::new(PythonScheduler { object, tasks: Vec::new() }),
            Err(error) => calls::fail(error),
        }
    };
    Ok(Entry::new(name, "a scheduler in Python", "the caller", move |_| Ok(copy())).kind(Kind::User))
}

impl PythonScheduler {
    fn view(&self, py: Python<'_>, view: &SystemView<'_>) -> PyResult<View> {
        let mut ready: Vec<(JobId, &temponet_task::Job)> = view.ready().collect();
        ready.sort_unstable_by_key(|(_, job)| job.tie());
        let job = |(id, job): &(JobId, &temponet_task::Job)| {
            let made = Job {
                id: id.0,
                task: self.tasks[job.task].clone_ref(py),
                number: job.number,
                criticality: job.criticality,
                value: job.value,
                release: job.release.0,
                deadline: job.deadline.0,
                wcet: job.wcet.0,
                bcet: job.bcet.0,
                estimate: job.estimate.map(|estimate| (estimate.median().0, estimate.high().0)),
                executed: job.executed.0,
                remaining: job.remaining().0,
                slack: job.slack(view.now),
                core: job.last_core.filter(|_| job.running).map(|core| core.0),
            };
            Py::new(py, made)
        };
        Ok(View { now: view.now.0, cores: view.cores(), jobs: ready.iter().map(job).collect::<PyResult<_>>()? })
    }

    fn ask(&self, view: &SystemView<'_>, assignment: &mut Assignment) -> PyResult<()> {
        Python::attach(|py| {
            let answer = self.object.bind(py).call_method1("decide", (self.view(py, view)?,))?;
            let is_active = |id: u32| view.active.contains(&JobId(id));
            let id_of = |job: &Bound<'_, PyAny>| -> PyResult<JobId> {
                let id = job.cast::<Job>().map(|job| job.get().id).map_err(|_| wrong(&answer, "a list of jobs"))?;
                if is_active(id) { Ok(JobId(id)) } else { Err(wrong(&answer, "ready jobs only")) }
            };
            if let Ok(by_core) = answer.cast::<PyDict>() {
                for (core, job) in by_core.iter() {
                    let core: usize = core.extract()?;
                    if core >= view.cores() {
                        return Err(wrong(&answer, &format!("cores from 0 to {}", view.cores() - 1)));
                    }
                    assignment.run(CoreId::new(core), id_of(&job)?);
                }
                return Ok(());
            }
            let mut chosen: Vec<JobId> = Vec::new();
            for job in answer.try_iter().map_err(|_| wrong(&answer, "a list of jobs"))? {
                let id = id_of(&job?)?;
                if chosen.contains(&id) {
                    return Err(wrong(&answer, "each job at most once"));
                }
                chosen.push(id);
            }
            // More jobs than cores are a ranking, of which the best run.
            chosen.truncate(view.system.most_offered());
            assignment.place(view, &chosen);
            Ok(())
        })
    }
}

fn wrong(answer: &Bound<'_, PyAny>, wanted: &str) -> PyErr {
    let got = answer.repr().map(|text| text.to_string()).unwrap_or_default();
    errors::input(format!("decide() must return {wanted}, not {got}"))
}

impl Scheduler for PythonScheduler {
    fn start(&mut self, system: &System) -> Result<(), NotApplicable> {
        let started = Python::attach(|py| -> PyResult<Option<String>> {
            self.tasks = system.tasks().iter().map(|task| PyString::new(py, &task.name).into_any().unbind()).collect();
            let object = self.object.bind(py);
            if !object.hasattr("start")? {
                return Ok(None);
            }
            let tasks = PyList::empty(py);
            for task in system.tasks() {
                let made = PyDict::new(py);
                made.set_item("name", &task.name)?;
                for (key, time) in [("wcet", task.wcet), ("bcet", task.bcet), ("deadline", task.deadline)] {
                    made.set_item(key, time.0)?;
                }
                made.set_item("criticality", task.criticality)?;
                made.set_item("value", task.value)?;
                tasks.append(made)?;
            }
            let refused = object.call_method1("start", (tasks, system.cores()))?;
            Ok(if refused.is_none() { None } else { Some(refused.str()?.to_string()) })
        });
        match started {
            Ok(None) => Ok(()),
            Ok(Some(reason)) => Err(NotApplicable(reason)),
            Err(error) => calls::fail(error),
        }
    }

    fn decide(&mut self, view: &SystemView<'_>, assignment: &mut Assignment) {
        if let Err(error) = self.ask(view, assignment) {
            calls::fail(error);
        }
    }
}

//! The entries of the catalog, one per scheduler.

use temponet_analysis::PriorityRule;
use temponet_analysis::packing::{Fit, fills_cores, hyperbolic_bound};
use temponet_task::Attribute;

use super::options::{FIT, NONE, OptionHelp, Options, QUANTUM};
use super::{Entry, Kind, Mark, Need};
use crate::schedulers::{
    amc, cbs, cd_split, d_over, dasa, dios, dm, dp_wrap, dvfs, early_reject, edcl, edf, edf_chain, edf_skip, edf_us,
    edf_vd, edzl, egs, fcfs, fp, fpedf, g_fl, hlfet, hrrn, lbesa, lifo, llf, llref, look_ahead, mh_edf, mk_dbp, mllf,
    muf, p_edf, p_rm, pd2, rank, red, reject_when_busy, request_index, rm, rr, run, shed, skip_over, srpt,
};
use crate::shared::clusters::packed;

/// Needs of schedulers that follow a fluid schedule.
const FLUID: &[Need] = &[
    Need::FreePreemption,
    Need::NoSharedResources("follows a fluid schedule"),
    Need::IdenticalCores("follows a fluid schedule of identical cores"),
];

/// Needs of Pfair schedulers.
const PFAIR: &[Need] = &[
    Need::FreePreemption,
    Need::NoSharedResources("runs jobs quantum by quantum"),
    Need::IdenticalCores("moves jobs among identical cores from quantum to quantum"),
];

/// Length of a subtask of Pfair schedulers.
const SUBTASK: OptionHelp = ("quantum", "1ms", "length of a subtask; the default adapts to sets on another time scale");

/// Greatest number of admitted jobs that may wait.
const MOST_WAITING: usize = 1_000_000_000;

/// Quantile that jobs are shed by.
const SHED_QUANTILE: OptionHelp =
    ("q", "0.5", "quantile of a job's length, by its estimate or by completed jobs of its task, 0 to 1");

const PLANNED_QUANTILE: OptionHelp = (
    "q",
    NONE,
    "quantile of a job's length to plan with, 0 to 1; by default the wcet, or the ninth decile of an estimate",
);

/// Packing rule that the user gave, which was checked when the scheduler was built.
fn fit(options: &Options) -> Fit {
    options.fit().unwrap_or(Fit::First)
}

/// Returns the schedulers of this crate, in the order in which they are listed.
pub(super) fn classical() -> Vec<Entry> {
    vec![
        Entry::new("fcfs", "first come, first served", "the simplest baseline; ignores deadlines", |_| {
            Ok(Box::new(fcfs::fcfs()))
        })
        .proof(|facts, _| facts.fixed_priorities(PriorityRule::Equal)),
        Entry::new(
            "lifo",
            "last come, first served, by jobs that are not past their deadlines",
            "servers in overload where nothing is known of lengths",
            |_| Ok(Box::new(lifo::Lifo::new())),
        ),
        Entry::new(
            "reject-when-busy",
            "rejects jobs that come while all cores are taken; others run in the order in which they came",
            "what servers do with a limit of concurrency that sheds load",
            |request| {
                Ok(Box::new(reject_when_busy::RejectWhenBusy::new(
                    request.options.count_within("queue", 0..=MOST_WAITING)?,
                )))
            },
        )
        .options(&[("queue", "0", "number of admitted jobs that may wait for a core")]),
        Entry::new(
            "rr",
            "round robin: ready jobs take turns of one quantum",
            "fair turns; ignores deadlines",
            |request| Ok(Box::new(rr::RoundRobin::new(request.options.quantum()?))),
        )
        .options(&[("quantum", "1ms", "length of a turn; the default adapts to sets on another time scale")])
        .needs(&[Need::UnboundTasks("gives turns on whichever core is free")]),
        Entry::new(
            "fp",
            "fixed priorities from the file, larger numbers first",
            "what most real-time operating systems do with given priorities",
            |_| Ok(Box::new(fp::fp())),
        )
        .reads(&[Attribute::Priority])
        .proof(|facts, _| facts.fixed_priorities(PriorityRule::Given)),
        Entry::new(
            "rm",
            "rate monotonic: shortest period first",
            "optimal fixed priorities for implicit deadlines; meets every deadline if Π(Ui + 1) <= 2 on one core",
            |_| Ok(Box::new(rm::rm())),
        )
        .proof(|facts, _| facts.fixed_priorities(PriorityRule::RateMonotonic)),
        Entry::new(
            "dm",
            "deadline monotonic: shortest relative deadline first",
            "optimal fixed priorities for constrained deadlines on one core",
            |_| Ok(Box::new(dm::dm())),
        )
        .proof(|facts, _| facts.fixed_priorities(PriorityRule::DeadlineMonotonic)),
        Entry::new(
            "edf",
            "earliest deadline first (global)",
            "optimal on one core up to U = 1; collapses in overload",
            |_| Ok(Box::new(edf::edf())),
        )
        .mark(Mark::Baseline)
        .proof(|facts, _| facts.edf()),
        Entry::new(
            "llf",
            "least laxity first (global)",
            "optimal on one core up to U = 1; many preemptions",
            |request| Ok(Box::new(llf::Llf::new(request.options.quantum()?))),
        )
        .options(&[QUANTUM])
        .proof(|facts, options| facts.least_laxity(options.quantum().ok()?)),
        Entry::new(
            "srpt",
            "shortest remaining processing time first",
            "shortest mean response time; ignores deadlines",
            |_| Ok(Box::new(srpt::Srpt::new())),
        ),
        Entry::new(
            "edf-skip",
            "EDF that runs jobs last that would be late by their wcet, or by their estimate",
            "the simplest good scheduler in overload",
            |request| {
                Ok(match request.options.given("q") {
                    Some(_) => Box::new(edf_skip::EdfSkip::by_quantile(request.options.share("q")?)),
                    None => Box::new(edf_skip::EdfSkip::new()),
                })
            },
        )
        .options(&[PLANNED_QUANTILE])
        .proof(|facts, options| options.given("q").is_none().then(|| facts.planning_edf())?),
        Entry::new(
            "mh-edf",
            "EDF over the largest set of ready jobs that can all be on time (Moore-Hodgson)",
            "the classical scheduler to beat in overload",
            |request| {
                Ok(match request.options.given("q") {
                    Some(_) => Box::new(mh_edf::MhEdf::by_quantile(request.options.share("q")?)),
                    None => Box::new(mh_edf::MhEdf::default()),
                })
            },
        )
        .options(&[PLANNED_QUANTILE])
        .proof(|facts, options| options.given("q").is_none().then(|| facts.planning_edf())?),
        Entry::new(
            "edf-shed",
            "EDF that never begins a job which would be late by a quantile of its length",
            "servers in overload whose requests have estimates",
            |request| Ok(Box::new(shed::Shed::by_deadline(request.options.share("q")?))),
        )
        .options(&[SHED_QUANTILE]),
        Entry::new(
            "sjf-shed",
            "shortest job first that never begins a job which would be late by a quantile of its length",
            "servers in high overload whose requests have estimates",
            |request| Ok(Box::new(shed::Shed::by_length(request.options.share("q")?))),
        )
        .options(&[SHED_QUANTILE]),
        Entry::new(
            "early-reject",
            "rejects a job when it comes if it would be late behind all admitted ones; these run in the order in which they came",
            "servers that answer at once whether they will serve a request (Mooncake)",
            |request| Ok(Box::new(early_reject::EarlyReject::new(request.options.share("q")?))),
        )
        .options(&[SHED_QUANTILE]),
        Entry::new(
            "rank",
            "the shortest job first by the median of its length, but before it a job that has waited for a patience",
            "servers that know which requests are longer, and not by how much (vllm-ltr); ignores deadlines",
            |request| Ok(Box::new(rank::Rank::new(request.options.time("patience")?))),
        )
        .options(&[("patience", NONE, "waiting time after which a job goes first")]),
        Entry::new(
            "request-index",
            "by a score that was learned from simulated servers in overload, between the orders of arrival, deadlines and lengths; what would be late by a length that the score says never begins",
            "servers in overload, whatever is known of lengths",
            |_| Ok(Box::new(request_index::Indexed::new())),
        ),
        Entry::new(
            "hrrn",
            "highest response ratio next: by waiting time relative to length, without preemption",
            "short jobs first, and long ones are not forgotten; ignores deadlines",
            |_| Ok(Box::new(hrrn::Hrrn::new())),
        ),
        Entry::new(
            "look-ahead",
            "as mh-edf, but also plans for the next jobs of each task (our own)",
            "the best simple scheduler in most overloads; the learned one takes its advice",
            |request| {
                let (caution, capacity) = (request.options.share("caution")?, request.options.share("capacity")?);
                Ok(Box::new(look_ahead::LookAhead::new(caution, capacity)))
            },
        )
        .kind(Kind::Simple)
        .options(&[
            ("caution", "0.5", "estimate of execution times: 0 is the mean, 1 the wcet"),
            ("capacity", "1", "share of the cores' time to plan with"),
        ]),
        Entry::new(
            "edzl",
            "EDF, but jobs without slack go first",
            "several cores: meets every deadline that global EDF meets, and more",
            |_| Ok(Box::new(edzl::Edzl::new())),
        )
        .proof(|facts, _| facts.planning_edf()),
        Entry::new(
            "d-over",
            "Koren and Shasha's overload scheduler for values, one core",
            "at least 1/(1+sqrt(k))^2 of the best possible value; all of it if every deadline can be met",
            |request| Ok(Box::new(d_over::DOver::new(request.options.number("k")?))),
        )
        .options(&[("k", "of the set", "ratio of the highest to the lowest value density, at least 1")])
        .needs(&[
            Need::FreePreemption,
            Need::NoSharedResources("keeps the jobs that it interrupts in an order of its own"),
            Need::OneCore,
        ])
        .proof(|facts, _| facts.planning_edf().filter(|_| facts.is_one_core())),
        Entry::new(
            "p-edf",
            "partitioned EDF: every task stays on one core",
            "no migrations; meets every deadline if no core has a load above 1",
            |request| Ok(Box::new(p_edf::clustered_edf(request.options.fit()?, 1))),
        )
        .options(&[FIT])
        .needs(&[Need::SharingWithinParts(|system, options| packed(system, 1, fit(options), fills_cores))])
        .proof(|facts, options| facts.partitioned_edf(options.fit().ok()?)),
        Entry::new(
            "c-edf",
            "clustered EDF: global EDF inside clusters of cores",
            "migration only between cores where it is cheap, such as those that share a cache",
            |request| Ok(Box::new(p_edf::clustered_edf(request.options.fit()?, request.options.count("size")?))),
        )
        .options(&[("size", "2", "cores per cluster"), FIT])
        .needs(&[Need::SharingWithinParts(|system, options| {
            packed(system, options.count("size").unwrap_or(1), fit(options), fills_cores)
        })])
        .proof(|facts, options| facts.clustered_edf(options.fit().ok()?, options.count("size").ok()?)),
        Entry::new(
            "p-rm",
            "partitioned rate monotonic: every task stays on one core",
            "no migrations; meets every deadline if each core is within the hyperbolic bound",
            |request| Ok(Box::new(p_rm::partitioned_rm(request.options.fit()?))),
        )
        .options(&[FIT])
        .needs(&[Need::SharingWithinParts(|system, options| packed(system, 1, fit(options), hyperbolic_bound))])
        .proof(|facts, options| facts.partitioned_rm(options.fit().ok()?)),
        Entry::new(
            "pd2",
            "PD2 Pfair: every task progresses in proportion, quantum by quantum",
            "optimal on any number of cores up to U = m, if all times are whole quanta",
            |request| Ok(Box::new(pd2::Pd2::new(request.options.quantum()?))),
        )
        .options(&[SUBTASK])
        .needs(PFAIR)
        .proof(|facts, options| facts.pfair(options.quantum().ok()?)),
        Entry::new(
            "mllf",
            "least laxity first; on ties the running job continues",
            "as llf, with far fewer preemptions",
            |_| Ok(Box::new(mllf::Mllf::new())),
        ),
        Entry::new(
            "muf",
            "critical jobs first, then least laxity, then priority",
            "transient overload: critical jobs keep their deadlines",
            |request| Ok(Box::new(muf::Muf::new(request.options.quantum()?))),
        )
        .mark(Mark::CriticalFirst)
        .reads(&[Attribute::Priority])
        .options(&[QUANTUM]),
        Entry::new(
            "edcl",
            "EDF, but jobs go first whose laxity would run out before the next event",
            "several cores: most of the gain of edzl, at the cost of EDF",
            |_| Ok(Box::new(edcl::Edcl::new())),
        )
        .proof(|facts, _| facts.planning_edf()),
        Entry::new(
            "edf-us",
            "tasks that use more than m/(2m-1) of a core first, then EDF",
            "several cores: meets every deadline up to U = m*m/(2m-1)",
            |_| Ok(Box::new(edf_us::edf_us())),
        )
        .proof(|facts, _| facts.heavy_tasks_first(edf_us::heavy)),
        Entry::new(
            "fpedf",
            "up to m - 1 tasks that use more than half a core first, then EDF",
            "several cores: meets every deadline up to U = (m+1)/2, the best bound for fixed job priorities",
            |_| Ok(Box::new(fpedf::FpEdf::new())),
        )
        .proof(|facts, _| facts.heavy_tasks_first(fpedf::heavy)),
        Entry::new(
            "g-fl",
            "global EDF by fair-lateness priority points",
            "several cores, soft deadlines: the smallest bound on lateness",
            |_| Ok(Box::new(g_fl::g_fl())),
        )
        .proof(|facts, _| facts.as_edf("EDF").filter(|_| facts.is_one_core())),
        Entry::new(
            "red",
            "EDF with admission: in overload the least valuable job is rejected",
            "overload with values; rejected jobs are accepted again when others end early",
            |_| Ok(Box::new(red::Red::default())),
        )
        .proof(|facts, _| facts.planning_edf()),
        Entry::new(
            "lbesa",
            "EDF plan that sheds the job of lowest value density while one would be late",
            "overload with values (Locke's best effort)",
            |_| Ok(Box::new(lbesa::Lbesa::default())),
        )
        .proof(|facts, _| facts.planning_edf()),
        Entry::new("dasa", "EDF plan filled in order of decreasing value density", "overload with values", |_| {
            Ok(Box::new(dasa::Dasa::default()))
        })
        .mark(Mark::ValueFirst)
        .proof(|facts, _| facts.planning_edf()),
        Entry::new(
            "dios",
            "admission by criticality, then value density; accepted jobs run by EDF",
            "overload with criticalities; our reading of the paper's baseline",
            |_| Ok(Box::new(dios::Dios::default())),
        )
        .proof(|facts, _| facts.planning_edf()),
        Entry::new(
            "skip-over-rto",
            "skippable jobs are always skipped, the others run by EDF",
            "tasks that may lose one job in every `skip`; loses no more than that",
            |_| Ok(Box::new(skip_over::SkipOver::red_tasks_only())),
        )
        .reads(&[Attribute::Skip])
        .proof(|facts, _| facts.as_edf_if(|task| !task.extra.has(Attribute::Skip))),
        Entry::new(
            "skip-over-bwp",
            "skippable jobs run when no other job is ready",
            "as skip-over-rto, and meets as many skippable jobs as fit",
            |_| Ok(Box::new(skip_over::SkipOver::blue_when_possible())),
        )
        .reads(&[Attribute::Skip])
        .proof(|facts, _| facts.as_edf_if(|task| !task.extra.has(Attribute::Skip))),
        Entry::new(
            "mk-dbp",
            "the task closest to violating its (m,k) constraint first",
            "overload of (m,k)-firm tasks: m of any k consecutive jobs are met",
            |_| Ok(Box::new(mk_dbp::MkDbp::new())),
        ),
        Entry::new(
            "er-pd2",
            "PD2 whose subtasks may run before their window",
            "optimal as pd2, with shorter response times",
            |request| Ok(Box::new(pd2::Pd2::with_early_release(request.options.quantum()?))),
        )
        .options(&[SUBTASK])
        .needs(PFAIR)
        .proof(|facts, options| facts.pfair(options.quantum().ok()?)),
        Entry::new(
            "llref",
            "the job with most of its fluid share left first",
            "optimal on any number of cores up to U = m",
            |_| Ok(Box::new(llref::Llref::default())),
        )
        .needs(FLUID)
        .proof(|facts, _| facts.fluid()),
        Entry::new(
            "lre-tl",
            "fluid shares, preempting only when necessary",
            "optimal as llref, with far fewer preemptions",
            |_| Ok(Box::new(llref::Llref::lazy())),
        )
        .needs(FLUID)
        .proof(|facts, _| facts.fluid()),
        Entry::new(
            "dp-wrap",
            "fluid shares wrapped around the cores",
            "optimal on any number of cores up to U = m, with few migrations",
            |_| Ok(Box::new(dp_wrap::DpWrap::default())),
        )
        .needs(&[
            Need::FreePreemption,
            Need::NoSharedResources("runs jobs at times of its own"),
            Need::IdenticalCores("wraps its shares around identical cores"),
        ])
        .proof(|facts, _| facts.fluid()),
        Entry::new(
            "run",
            "reduction to uniprocessor: EDF over the times in which servers must not run",
            "optimal on any number of cores up to U = m, with the fewest preemptions",
            |_| Ok(Box::new(run::Run::default())),
        )
        .needs(&[
            Need::FreePreemption,
            Need::NoSharedResources("runs jobs at times of its own"),
            Need::IdenticalCores("packs its servers onto identical cores"),
        ])
        .proof(|facts, _| facts.planning_edf().filter(|_| facts.is_one_core())),
        Entry::new(
            "cd-split",
            "partitioned EDF that splits one task per core (C=D)",
            "almost up to U = m, with at most m - 1 tasks that migrate",
            |_| Ok(Box::new(cd_split::CdSplit::default())),
        )
        .needs(&[
            Need::FreePreemption,
            Need::NoSharedResources("splits jobs at times of its own"),
            Need::IdenticalCores("splits jobs among identical cores"),
        ])
        .proof(|facts, _| facts.split_tasks(cd_split::fits)),
        Entry::new(
            "edf-vd",
            "EDF with virtual deadlines for critical jobs",
            "mixed criticality: critical jobs meet their deadlines even if they overrun their wcet",
            |_| Ok(Box::new(edf_vd::EdfVd::new())),
        )
        .proof(|facts, _| facts.virtual_deadlines()),
        Entry::new(
            "amc",
            "fixed priorities; jobs of low criticality are dropped after an overrun",
            "mixed criticality under fixed priorities",
            |_| Ok(Box::new(amc::Amc::new())),
        )
        .reads(&[Attribute::Priority])
        .proof(|facts, _| facts.without_overruns(PriorityRule::GivenOrDeadline)),
        Entry::new(
            "edf-chain",
            "EDF by due dates: a job is due in time for the longest path of wcets behind it",
            "tasks that come after each other; optimal on one core if all deadlines can be met",
            |_| Ok(Box::new(edf_chain::edf_chain())),
        )
        .mark(Mark::DueDatesFirst)
        .needs(&[Need::Precedence])
        .proof(|facts, _| facts.due_dates(edf_chain::leads)),
        Entry::new(
            "hlfet",
            "highest level first: the job with the longest path of wcets to the end of its graph",
            "short makespan of one graph on several cores; ignores deadlines",
            |_| Ok(Box::new(hlfet::hlfet())),
        )
        .needs(&[Need::Precedence]),
        Entry::new(
            "egs",
            "edf-chain after edge generation: graphs get more edges until they are no wider than the cores",
            "graphs with more parallel tasks than cores; the classical part of EGS",
            |_| Ok(Box::new(egs::egs())),
        )
        .needs(&[Need::Precedence])
        .proof(|facts, _| facts.due_dates(egs::leads)),
        Entry::new(
            "static-edf",
            "EDF at the lowest constant speed that suffices",
            "saves energy; meets every deadline up to U = 1 on one core",
            |_| Ok(Box::new(dvfs::SlowEdf::fixed())),
        )
        .proof(|facts, _| facts.one_speed().or_else(|| facts.constant_speed(dvfs::constant_speed))),
        Entry::new(
            "cc-edf",
            "EDF that slows down when jobs end early (cycle conserving)",
            "saves more energy; meets every deadline up to U = 1 on one core",
            |_| Ok(Box::new(dvfs::SlowEdf::cycle_conserving())),
        )
        .proof(|facts, _| facts.one_speed()),
        Entry::new(
            "cbs",
            "constant bandwidth servers for tasks with a server, EDF for the rest",
            "hard tasks keep their deadlines beside aperiodic work",
            |_| Ok(Box::new(cbs::Cbs::new())),
        )
        .reads(&[Attribute::Server])
        .proof(|facts, _| facts.as_edf_if(|task| !task.extra.has(Attribute::Server))),
    ]
}

//! Keys of the file as a whole, of `costs` and of `[[server]]`.

use temponet_task::{
    Aim, Arrival, Communication, Costs, OnMiss, Preemption, Protocol, Server, Speed, Task, TaskSet, Time, TimeUnit,
};

use super::machine::groups;
use super::preemption::{PREEMPTION, preemption};
use super::{
    BURST, CHAIN, CORE, Csv, Given, Key, Kind, MODE, MOST_CORES, NAME, Plain, Spec, Subject, TASK, Table, put, set,
};
use crate::Problem;
use crate::node::{Node, Value};
use crate::out::{Out, text, time};

/// What a file states about the set as a whole, and its lists of tables.
pub(crate) struct SetDraft<'a> {
    pub set: TaskSet,
    /// Number of cores and the line that states it.
    pub cores: Option<(usize, usize)>,
    pub machine: Option<&'a Node>,
    /// Limit on preemption of tasks that state none, and its line.
    pub preemption: Option<(Preemption, usize)>,
    pub communication: Communication,
    /// Lines that state the speeds and the protocol.
    pub speeds_line: usize,
    pub protocol_line: Option<usize>,
    pub servers: &'a [Node],
    pub tasks: &'a [Node],
    pub bursts: &'a [Node],
    pub chains: &'a [Node],
    pub modes: &'a [Node],
}

impl SetDraft<'_> {
    pub fn new(name: String) -> SetDraft<'static> {
        SetDraft {
            set: TaskSet::new(name, Vec::new(), 1),
            cores: None,
            machine: None,
            preemption: None,
            communication: Communication::default(),
            speeds_line: 0,
            protocol_line: None,
            servers: &[],
            tasks: &[],
            bursts: &[],
            chains: &[],
            modes: &[],
        }
    }
}

pub(crate) struct OfSet;

impl Subject for OfSet {
    type Draft<'a> = SetDraft<'a>;
    type Source = TaskSet;
}

type Row = Key<OfSet>;

/// Unit of bare numbers, which is read before everything else.
pub(crate) const TIME_UNIT: Spec = Spec::new(
    "time_unit",
    Kind::Word(|| [TimeUnit::Ns, TimeUnit::Us, TimeUnit::Ms, TimeUnit::S].map(TimeUnit::name).into()),
    "unit of a bare number",
)
.default("`\"ms\"`")
.csv(Csv::Omitted);

/// When values that tasks read change hands, also a key of `[[chain]]`.
pub(crate) const COMMUNICATION: Spec = Spec::new(
    "communication",
    Kind::Word(|| [Communication::Implicit, Communication::Let].map(Communication::name).into()),
    "when values change hands, for chains that do not say so themselves",
)
.default("`\"implicit\"`")
.see("#precedence-and-chains")
.example("\"let\"");

/// Name of the list of bursts.
const BURSTS: &str = "burst";

const AIM: Kind = Kind::Word(|| Aim::ALL.map(Aim::name).into());

const fn of_set(spec: Spec) -> Spec {
    spec.csv(Csv::Refused("of the whole set"))
}

/// A list of tables.
const fn tables(name: &'static str, table: &'static Kind, doc: &'static str) -> Spec {
    of_set(Spec::new(name, Kind::List(table, 0, usize::MAX), doc))
}

/// Keys of the file.
pub(crate) static SET: Table<OfSet> = Table {
    what: "the file",
    keys: &[
        Row::new(
            Spec::new("$schema", Kind::Text, "file or address of the JSON schema, for editors")
                .csv(Csv::Omitted)
                .see("#editors"),
            |_, given| given.text().map(|_| ()),
            |_, _| None,
        ),
        Row::new(
            Spec::new("description", Kind::Text, "one sentence, shown in reports").csv(Csv::Omitted),
            |draft, given| set(&mut draft.set.description, given.text().map(String::from)),
            |set, _| (!set.description.is_empty()).then(|| text(&set.description)),
        ),
        Row::new(
            TIME_UNIT,
            |draft, given| set(&mut draft.set.time_unit, given.word(TimeUnit::from_name)),
            |set, _| Some(text(set.time_unit.name())),
        ),
        Row::new(
            of_set(Spec::new("cores", Kind::Integer(1, MOST_CORES), "number of identical cores")).default("`1`"),
            |draft, given| put(&mut draft.cores, given.at(given.integer().map(|cores| cores as usize))),
            |set, _| set.machine().cores().is_empty().then_some(Out::Integer(set.cores() as i64)),
        ),
        Row::new(
            tables("core", &Kind::Table(&CORE), "cores with names and speeds, in place of `cores`")
                .see("#cores-that-differ"),
            |draft, given| put(&mut draft.machine, Ok(given.node)),
            |set, _| CORE.list(set, &groups(set.machine().cores())),
        ),
        Row::new(
            of_set(Spec::new(
                "on_miss",
                Kind::Word(|| [OnMiss::Abort, OnMiss::Continue].map(OnMiss::name).into()),
                "at its deadline an unfinished job is removed (`\"abort\"`) or goes on (`\"continue\"`)",
            ))
            .default("`\"abort\"`"),
            |draft, given| given.word(OnMiss::from_name).map(|rule| draft.set.system.set_on_miss(rule)),
            |set, _| (set.on_miss() != OnMiss::default()).then(|| text(set.on_miss().name())),
        ),
        Row::new(
            of_set(PREEMPTION)
                .doc("where running jobs can lose their core, for tasks that do not say so themselves")
                .default("`\"free\"`"),
            |draft, given| put(&mut draft.preemption, given.at(preemption(given))),
            |_, _| None,
        ),
        Row::new(
            of_set(COMMUNICATION),
            |draft, given| set(&mut draft.communication, given.word(Communication::from_name)),
            |_, _| None,
        ),
        Row::new(
            of_set(Spec::new(
                "protocol",
                Kind::Word(|| Protocol::ALL.map(Protocol::name).into()),
                "what happens while a job waits for a resource that tasks share",
            ))
            .default("`\"inheritance\"`")
            .see("#critical-sections")
            .example("\"inheritance\""),
            |draft, given| {
                put(&mut draft.protocol_line, Ok(given.node.line))?;
                given.word(Protocol::from_name).map(|protocol| draft.set.system.set_protocol(protocol))
            },
            |set, _| (set.protocol() != Protocol::default()).then(|| text(set.protocol().name())),
        ),
        Row::new(
            of_set(Spec::new(
                "goal",
                Kind::Either(&[AIM, Kind::List(&AIM, 1, usize::MAX)]),
                "what schedules are judged by, the most important first",
            ))
            .default("derived from the tasks")
            .see("metrics.md#the-goal")
            .example("[\"critical\", \"met\"]"),
            |draft, given| aims(given).map(|aims| draft.set.system.set_aims(aims)),
            |set, _| (!set.aims().is_empty()).then(|| Out::list(set.aims().iter().map(|aim| text(aim.name())))),
        ),
        Row::new(
            of_set(Spec::new(
                "speeds",
                Kind::List(&Kind::Number(0.001, 1.0), 1, usize::MAX),
                "core speeds that a scheduler can choose, as shares of full speed, which is one of them",
            ))
            .default("`[1.0]`")
            .example("[0.5, 0.75, 1.0]"),
            |draft, given| {
                draft.speeds_line = given.node.line;
                speeds(given).map(|speeds| draft.set.system.set_speeds(speeds))
            },
            |set, _| {
                let share = |speed: &Speed| Out::Number(f64::from(speed.0) / 1000.0);
                (set.speeds() != [Speed::FULL]).then(|| Out::list(set.speeds().iter().map(share)))
            },
        ),
        Row::new(
            of_set(Spec::new("costs", Kind::Table(&COSTS), "overheads of scheduling"))
                .see("metrics.md#costs")
                .example("{ context_switch = \"10us\", migration = \"50us\", decision = \"0us\" }"),
            |draft, given| {
                let mut costs = Costs::default();
                COSTS.read(given.node, &mut costs, given.with)?;
                draft.set.system.set_costs(costs);
                Ok(())
            },
            |set, _| (*set.costs() != Costs::default()).then(|| Out::Table(COSTS.entries(set, set.costs()))),
        ),
        Row::new(
            tables("server", &Kind::Table(&SERVER), "reservations for aperiodic work")
                .see("#server-a-reservation-for-aperiodic-work"),
            |draft, given| set(&mut draft.servers, given.node.list(given.name)),
            |set, _| SERVER.list(set, set.servers()),
        ),
        Row::new(
            tables("task", &Kind::Table(&TASK), "the tasks").unless(&[BURSTS]).see("#task"),
            |draft, given| set(&mut draft.tasks, given.node.list(given.name)),
            |set, _| TASK.list(set, set.tasks().iter().filter(|task| !is_burst(task) && !task.is_part)),
        ),
        Row::new(
            tables(BURSTS, &Kind::Table(&BURST), "load peaks").see("#burst-a-load-peak"),
            |draft, given| set(&mut draft.bursts, given.node.list(given.name)),
            |set, _| BURST.list(set, set.tasks().iter().filter(|task| is_burst(task))),
        ),
        Row::new(
            tables("chain", &Kind::Table(&CHAIN), "paths whose reaction time and data age are measured")
                .see("#precedence-and-chains"),
            |draft, given| set(&mut draft.chains, given.node.list(given.name)),
            |set, _| CHAIN.list(set, set.chains()),
        ),
        Row::new(
            tables("mode", &Kind::Table(&MODE), "different loads from given times on")
                .see("#mode-a-different-load-from-a-given-time-on"),
            |draft, given| set(&mut draft.modes, given.node.list(given.name)),
            |set, _| MODE.list(set, set.modes()),
        ),
    ],
};

fn is_burst(task: &Task) -> bool {
    matches!(task.arrival, Arrival::Burst { .. })
}

/// Reads `goal = ["critical", "value"]`, or a single aim.
fn aims(given: Given<'_>) -> Result<Vec<Aim>, Problem> {
    let items = match &given.node.value {
        Value::List(items) => items.as_slice(),
        _ => std::slice::from_ref(given.node),
    };
    if items.is_empty() {
        return Err(Problem::at(given.node.line, "goal = [] names no aim"));
    }
    items.iter().map(|node| Given { node, kind: AIM, ..given }.word(Aim::from_name)).collect()
}

fn speeds(given: Given<'_>) -> Result<Vec<Speed>, Problem> {
    let speed = |item: Given<'_>| item.number().map(|share| Speed((share * 1000.0).round() as u32));
    let mut speeds = given.items()?.map(speed).collect::<Result<Vec<_>, _>>()?;
    speeds.sort();
    speeds.dedup();
    match speeds.last() {
        Some(&Speed::FULL) => Ok(speeds),
        _ => Err(Problem::at(given.node.line, "speeds are shares of full speed and must contain 1.0")),
    }
}

/// Keys of `costs`.
pub(crate) static COSTS: Table<Plain<Costs, Costs>> = Table {
    what: "costs",
    keys: &[
        Key::new(
            Spec::new("context_switch", Kind::Time, "added when a job is put on a core that another one had")
                .default("`0`"),
            |costs, given| set(&mut costs.context_switch, given.time()),
            |_, costs| Some(time(costs.context_switch)),
        ),
        Key::new(
            Spec::new("migration", Kind::Time, "added when a job goes on on another core").default("`0`"),
            |costs, given| set(&mut costs.migration, given.time()),
            |_, costs| Some(time(costs.migration)),
        ),
        Key::new(
            Spec::new(
                "decision",
                Kind::Time,
                "added for each decision to the job on core 0 and to jobs that it dispatches",
            )
            .default("`0`"),
            |costs, given| set(&mut costs.decision, given.time()),
            |_, costs| Some(time(costs.decision)),
        ),
    ],
};

/// Keys of `[[server]]`. The draft has the line of the name.
pub(crate) static SERVER: Table<Plain<(Server, usize), Server>> = Table {
    what: "server",
    keys: &[
        Key::new(
            NAME,
            |(server, line), given| {
                *line = given.node.line;
                set(&mut server.name, given.printable())
            },
            |_, server| Some(text(&server.name)),
        ),
        Key::new(
            Spec::new("budget", Kind::PositiveTime, "processor time in every period, at most the period").required(),
            |(server, _), given| set(&mut server.budget, given.time()),
            |_, server| Some(time(server.budget)),
        ),
        Key::new(
            Spec::new("period", Kind::PositiveTime, "time after which the budget is full again").required(),
            |(server, _), given| set(&mut server.period, given.time()),
            |_, server| Some(time(server.period)),
        ),
    ],
};

/// A server of which nothing is known.
pub(crate) fn unknown_server() -> Server {
    Server { name: String::new(), budget: Time::ZERO, period: Time::ZERO }
}

//! What to change in a set, in words, as JSON and as a section of a page.

use serde_json::{Value, json};
use temponet_page::{HtmlCell, HtmlTable, escape};
use temponet_sched::what_if::{Advised, Answer, Change, Edge, Room, WhatIf, what_if};
use temponet_sim::labels;
use temponet_task::{TaskId, TaskSet, Time};
use temponet_wording::{counted, listed};

/// Largest number of names in a sentence.
const MOST_NAMES: usize = 8;

/// What to change in a set, with the set itself.
pub struct WhatToChange<'a> {
    set: &'a TaskSet,
    /// What was found.
    pub found: WhatIf,
}

/// One advised change in words.
pub struct ChangeWords {
    /// What is done, such as "slow mapping down".
    pub change: String,
    /// What it is now.
    pub from: String,
    /// What it is to be.
    pub to: String,
    /// How much that is, in percent; a dash where there is no number.
    pub by: String,
    /// What is known then.
    pub then: String,
}

impl ChangeWords {
    /// Headers of the columns.
    pub const COLUMNS: [&'static str; 5] = ["what to change", "from", "to", "by", "then"];

    /// The cells of a row.
    pub fn cells(self) -> [String; 5] {
        [self.change, self.from, self.to, self.by, self.then]
    }
}

/// Headers of the table of rooms.
pub const ROOM_COLUMNS: [&str; 7] =
    ["room of", "wcet", "may grow to", "period", "may shrink to", "deadline", "may shrink to"];

impl<'a> WhatToChange<'a> {
    /// Finds what to change.
    pub fn on(set: &'a TaskSet) -> WhatToChange<'a> {
        WhatToChange { set, found: what_if(set) }
    }

    fn name(&self, task: TaskId) -> &str {
        &self.set.tasks()[task].name
    }

    /// Name of the task as a whole, for changes of all its parts.
    fn whole(&self, task: TaskId) -> &str {
        self.name(self.set.whole(task))
    }

    /// Name of a task, or of one part of it: the last part has the name of the whole, and is said to be no more.
    fn part(&self, task: TaskId) -> String {
        let is_last_of_parts = self.set.whole(task) == task && part_of(self.set, task).is_some();
        if is_last_of_parts { format!("the last part of {}", self.name(task)) } else { self.name(task).into() }
    }

    fn names(&self, tasks: &[TaskId]) -> String {
        listed(tasks.iter().map(|task| self.name(*task)), MOST_NAMES)
    }

    /// The sentence above the tables.
    pub fn sentence(&self) -> String {
        match (&self.found.answer, self.found.advice.first()) {
            (Answer::Fits(proof), _) => {
                let by = format!("{} ({})", proof.scheduler, proof.by);
                format!("The set provably fits under {by}. So far may each number move, the others unchanged.")
            }
            (_, Some(_)) => {
                let now = match self.found.answer {
                    Answer::Impossible => "No scheduler can meet every deadline as the set is",
                    _ => "Nothing is proved of the set as it is",
                };
                format!("{now}. Each line is one change; the next smaller one is not enough.")
            }
            (_, None) => "No single change that was tried is enough.".into(),
        }
    }

    /// The advised changes, the most effective first.
    pub fn changes(&self) -> Vec<ChangeWords> {
        self.found.advice.iter().map(|advised| self.in_words(advised)).collect()
    }

    fn in_words(&self, advised: &Advised) -> ChangeWords {
        let task = |task: TaskId| &self.set.tasks()[task];
        let period = |of: TaskId| task(of).period().unwrap_or(Time::ZERO);
        let fewer = format!("−{:.1}%", 100.0 * advised.size);
        let words = |change: String, from: String, to: String, by: String| {
            let then = then(&advised.then);
            ChangeWords { change, from, to, by, then }
        };
        match &advised.change {
            Change::Wcet(of, to) => {
                words(format!("shorten {}", self.part(*of)), task(*of).wcet.to_string(), to.to_string(), fewer)
            }
            Change::Period(of, to) => {
                words(format!("slow {} down", self.whole(*of)), rate(period(*of)), rate(*to), fewer)
            }
            Change::Deadline(of, to) => {
                let from = task(*of).deadline;
                let more = format!("+{:.1}%", 100.0 * (to.0 as f64 / from.0.max(1) as f64 - 1.0));
                words(format!("give {} a later deadline", self.name(*of)), from.to_string(), to.to_string(), more)
            }
            Change::Drop(of) => words(format!("drop {}", self.name(*of)), rate(period(*of)), "–".into(), fewer),
            Change::Move(of, to) => {
                let all = || "all cores".to_string();
                let from = labels::cores_of(self.set, *of).unwrap_or_else(all);
                let names = |core| labels::core(self.set, core);
                let to = if to.is_all() {
                    all()
                } else {
                    to.iter(self.set.cores()).map(names).collect::<Vec<_>>().join(", ")
                };
                words(format!("move {}", self.part(*of)), from, to, "–".into())
            }
            Change::Cores(to) => {
                let more = counted(to - self.set.cores(), "more core");
                let like = advised.change.apply(self.set).and_then(|set| set.machine().cores().last().cloned());
                let like = like.map_or(String::new(), |core| format!(" like {}", core.name));
                words(format!("{more}{like}"), self.set.cores().to_string(), to.to_string(), "–".into())
            }
            Change::Periods(slowed) => {
                words(format!("slow {} down, see below", counted(slowed.len(), "task")), "–".into(), "–".into(), fewer)
            }
            Change::EveryWcet(to) => words("shorten every task".into(), "1".into(), part(*to), fewer),
            Change::EveryPeriod(to) => words("slow every task down".into(), "1".into(), part(1_000_000 / to), fewer),
            _ => words("change".into(), String::new(), String::new(), String::new()),
        }
    }

    /// Tasks whose deadlines move with a change of periods, with their deadlines then: those that were periods stay so.
    fn moved_deadlines(&self, change: &Change) -> Vec<(&str, Time)> {
        let is_of_periods = matches!(change, Change::Period(..) | Change::Periods(_) | Change::EveryPeriod(_));
        let Some(changed) = Some(change).filter(|_| is_of_periods).and_then(|change| change.apply(self.set)) else {
            return Vec::new();
        };
        let moved = self
            .set
            .tasks()
            .iter()
            .zip(changed.tasks())
            .filter(|(before, after)| before.deadline != after.deadline && !before.is_part);
        moved.map(|(before, after)| (before.name.as_str(), after.deadline)).collect()
    }

    /// The rooms of the tasks, the tightest first: the cells of [`ROOM_COLUMNS`].
    pub fn rooms(&self) -> Vec<Vec<String>> {
        let row = |room: &Room| {
            let task = &self.set.tasks()[room.task];
            let more = |edge: Edge| if edge.beyond.is_none() { " or more" } else { "" };
            let less = |edge: Edge| if edge.beyond.is_none() { " or less" } else { "" };
            let period = task.period().unwrap_or(Time::ZERO);
            vec![
                self.part(room.task),
                task.wcet.to_string(),
                format!("{}{}", room.wcet.to, more(room.wcet)),
                period.to_string(),
                room.period.map_or("–".into(), |edge| format!("{}{}", edge.to, less(edge))),
                task.deadline.to_string(),
                format!("{}{}", room.deadline.to, less(room.deadline)),
            ]
        };
        self.found.rooms.iter().map(row).collect()
    }

    /// What else is to be said, one sentence each.
    pub fn notes(&self) -> Vec<String> {
        let found = &self.found;
        let mut notes = Vec::new();
        if let Some(answer) = &found.one_core_less {
            let known = match answer {
                Answer::Fits(proof) => format!("it still provably fits ({}, {})", proof.scheduler, proof.by),
                Answer::Open => "nothing is proved".into(),
                Answer::Impossible => "no scheduler can meet every deadline".into(),
            };
            notes.push(format!("With one core less, {known}."));
        }
        for advised in &found.advice {
            if let Change::Periods(slowed) = &advised.change {
                let each = slowed.iter().map(|(task, period)| format!("{} to {}", self.whole(*task), rate(*period)));
                let each: Vec<String> = each.collect();
                let then = then(&advised.then);
                notes
                    .push(format!("Slow down together: {}; then {then}.", listed(each.iter().map(String::as_str), 99)));
            }
        }
        let periods = found.advice.iter().filter_map(|advised| match advised.change {
            Change::Period(of, _) => Some((self.whole(of), self.moved_deadlines(&advised.change))),
            _ => None,
        });
        let moving: Vec<_> = periods.filter(|(_, moved)| !moved.is_empty()).collect();
        let followers = moving.iter().filter_map(|(of, moved)| {
            let names: Vec<&str> = moved.iter().map(|(name, _)| *name).filter(|name| name != of).collect();
            (!names.is_empty()).then(|| format!("; with that of {of} also {}", listed(names, MOST_NAMES)))
        });
        if !moving.is_empty() {
            notes.push(format!("Deadlines that are periods move with them{}.", followers.collect::<String>()));
        }
        if !found.guarantee.is_empty() {
            let whose = if found.guarantee.len() == 1 { "its" } else { "their" };
            notes.push(format!(
                "Or guarantee a part: with guarantee = true on {}, the shield guarantees all {whose} deadlines.",
                self.names(&found.guarantee)
            ));
        }
        if !found.in_vain.is_empty() && !found.advice.is_empty() {
            notes.push(format!("No change of one of these alone is enough: {}.", self.names(&found.in_vain)));
        }
        if !found.left_out.is_empty() {
            notes.push(format!(
                "Not looked at, because the effort was spent: {}.",
                counted(found.left_out.len(), "task")
            ));
        }
        notes
    }

    /// The advice as a JSON object. Times are in nanoseconds.
    pub fn json(&self) -> Value {
        let found = &self.found;
        let advice = found.advice.iter().map(|advised| {
            let mut row = change_json(self.set, &advised.change);
            let moved = self.moved_deadlines(&advised.change);
            if !moved.is_empty() {
                row["deadlines"] = moved.iter().map(|(name, to)| json!({ "task": name, "to": to.0 })).collect();
            }
            row["not_enough"] = advised.not_enough.as_ref().map_or(Value::Null, |less| value_of(less).into());
            (row["size"], row["then"], row["proof"]) =
                (advised.size.into(), answer(&advised.then).into(), proof_json(&advised.then));
            row
        });
        let edge = |edge: Edge| json!({ "to_ns": edge.to.0, "not_ns": edge.beyond.map(|beyond| beyond.0) });
        let rooms = found.rooms.iter().map(|room| {
            json!({
                "task": self.name(room.task), "part": part_of(self.set, room.task), "wcet": edge(room.wcet), "period": room.period.map(edge),
                "deadline": edge(room.deadline),
            })
        });
        let names = |tasks: &[TaskId]| tasks.iter().map(|task| self.name(*task).to_string()).collect::<Vec<_>>();
        json!({
            "answer": answer(&found.answer),
            "proof": proof_json(&found.answer),
            "sentence": self.sentence(),
            "advice": advice.collect::<Vec<_>>(),
            "rooms": rooms.collect::<Vec<_>>(),
            "one_core_less": found.one_core_less.as_ref().map(answer),
            "guarantee": names(&found.guarantee),
            "in_vain": names(&found.in_vain),
            "left_out": names(&found.left_out),
        })
    }

    /// The advice as HTML.
    pub fn html(&self) -> String {
        let mut html = format!("<p>{}</p>\n", escape(&self.sentence()));
        let mut rows: Vec<Vec<String>> = self.changes().into_iter().map(|change| change.cells().into()).collect();
        let mut header: &[&str] = &ChangeWords::COLUMNS;
        if rows.is_empty() {
            (rows, header) = (self.rooms(), &ROOM_COLUMNS);
        }
        if !rows.is_empty() {
            let mut table = HtmlTable::new().columns(header);
            let last = rows.len().min(MOST_ROWS);
            let cell = |(column, words): (usize, String)| {
                HtmlCell::text(words).class(if column == 0 || header[column] == "then" { "words" } else { "" })
            };
            let count = rows.len();
            for row in rows.into_iter().take(last) {
                table.row("", &row.into_iter().enumerate().map(cell).collect::<Vec<_>>());
            }
            html += &table.finish();
            if count > last {
                html += &format!("<p class=\"hint\">and {} more</p>\n", count - last);
            }
        }
        html += &self.notes().iter().map(|note| format!("<p>{}</p>\n", escape(note))).collect::<String>();
        html
    }
}

/// Greatest number of rows of a table for people; JSON has them all.
pub const MOST_ROWS: usize = 15;

/// A part of a thousand as a factor.
fn part(thousandths: u64) -> String {
    format!("{}.{:03}", thousandths / 1000, thousandths % 1000)
}

/// A period as a rate, and as a time.
fn rate(period: Time) -> String {
    let hertz = 1e9 / period.0.max(1) as f64;
    let text = format!("{hertz:.2}");
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    if text == "0" { period.to_string() } else { format!("{text} Hz ({period})") }
}

/// What is known, in words.
fn then(answer: &Answer) -> String {
    match answer {
        Answer::Fits(proof) => format!("provably fits ({})", proof.scheduler),
        Answer::Open => "nothing is provably impossible".into(),
        Answer::Impossible => "impossible".into(),
    }
}

/// What is known, as a word of JSON.
fn answer(answer: &Answer) -> &'static str {
    match answer {
        Answer::Fits(_) => "fits",
        Answer::Open => "open",
        Answer::Impossible => "impossible",
    }
}

fn proof_json(answer: &Answer) -> Value {
    match answer {
        Answer::Fits(proof) => json!({ "scheduler": proof.scheduler, "by": proof.by }),
        _ => Value::Null,
    }
}

/// The number that a change sets.
fn value_of(change: &Change) -> u64 {
    match change {
        Change::Wcet(_, to) | Change::Period(_, to) | Change::Deadline(_, to) => to.0,
        Change::Cores(to) => *to as u64,
        Change::EveryWcet(to) | Change::EveryPeriod(to) => *to,
        _ => 0,
    }
}

/// Number of the part of a task, from 1; none for a task without parts.
fn part_of(set: &TaskSet, task: TaskId) -> Option<usize> {
    let (first, whole) = (set.first_part(task), set.whole(task));
    (first != whole).then(|| task.index() - first.index() + 1)
}

fn change_json(set: &TaskSet, change: &Change) -> Value {
    let name = |task: &TaskId| set.tasks()[*task].name.clone();
    let whole = |task: &TaskId| set.tasks()[set.whole(*task)].name.clone();
    let of = |task: &TaskId| &set.tasks()[*task];
    match change {
        Change::Wcet(task, to) => {
            let part = part_of(set, *task);
            json!({ "change": "wcet", "task": name(task), "part": part, "from": of(task).wcet.0, "to": to.0 })
        }
        Change::Period(task, to) => {
            let from = of(task).period().map(|period| period.0);
            json!({ "change": "period", "task": whole(task), "from": from, "to": to.0 })
        }
        Change::Periods(slowed) => {
            let each = slowed.iter().map(|(task, to)| json!({ "task": whole(task), "to": to.0 }));
            json!({ "change": "periods", "tasks": each.collect::<Vec<_>>() })
        }
        Change::Deadline(task, to) => {
            json!({ "change": "deadline", "task": name(task), "from": of(task).deadline.0, "to": to.0 })
        }
        Change::Drop(task) => json!({ "change": "drop", "task": name(task) }),
        Change::Move(task, to) => {
            let cores: Vec<usize> = to.iter(set.cores()).map(|core| core.index()).collect();
            json!({ "change": "move", "task": name(task), "part": part_of(set, *task), "to": cores })
        }
        Change::Cores(to) => json!({ "change": "cores", "from": set.cores(), "to": to }),
        Change::EveryWcet(to) => json!({ "change": "every wcet, in thousandths", "from": 1000, "to": to }),
        Change::EveryPeriod(to) => json!({ "change": "every period, in thousandths", "from": 1000, "to": to }),
        _ => json!({ "change": "other" }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use temponet_task::Task;

    fn set(cores: usize) -> TaskSet {
        let task =
            |name: &str, period: u64, wcet: u64| Task::periodic(name, Time::from_ms(period), Time::from_ms(wcet));
        TaskSet::new("s", vec![task("control", 10, 4), task("<map>", 100, 75)], cores)
    }

    #[test]
    fn mapping_at_8_hertz_is_said_so() {
        let set = set(1);
        let advice = WhatToChange::on(&set);
        let rows: Vec<[String; 5]> = advice.changes().into_iter().map(ChangeWords::cells).collect();
        let slow = rows.iter().find(|row| row[0] == "slow <map> down").unwrap();
        assert_eq!(slow[1..], ["10 Hz (100ms)", "8 Hz (125ms)", "−20.0%", "provably fits (edf)"]);
        assert!(rows.iter().any(|row| row[0] == "1 more core" && row[2] == "2"), "{rows:?}");
        let json = advice.json();
        assert_eq!((&json["answer"], &json["advice"][0]["then"]), (&json!("impossible"), &json!("fits")));
        assert!(advice.html().contains("&lt;map&gt;") && !advice.html().contains("<map>"));
    }

    #[test]
    fn deadlines_that_move_with_a_period_are_named() {
        let set = set(1);
        let advice = WhatToChange::on(&set);
        let moved = "Deadlines that are periods move with them.";
        assert!(advice.notes().iter().any(|note| note == moved), "{:?}", advice.notes());
        let json = advice.json();
        let slowed = json["advice"].as_array().unwrap().iter().find(|row| row["change"] == "period").unwrap();
        assert_eq!(slowed["deadlines"][0]["to"], slowed["to"]);
    }

    #[test]
    fn a_set_that_fits_shows_its_room() {
        let set = set(2);
        let advice = WhatToChange::on(&set);
        assert!(advice.sentence().starts_with("The set provably fits under"), "{}", advice.sentence());
        let rows = advice.rooms();
        assert_eq!(rows[0].len(), ROOM_COLUMNS.len());
        assert!(advice.notes()[0].contains("With one core less, no scheduler can meet every deadline"));
        assert!(advice.html().contains("may grow to"));
    }
}

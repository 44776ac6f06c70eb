//! The built-in set that mixes unequal cores, affinity, limits on preemption, precedence, chains, shared resources and
//! estimates: every scheduler that users can name runs it or says why not, what cannot be proved is said so, and its
//! picture shows all of it.

use temponet::{Model, TaskSet, Time};
use temponet_formats::builtin::Builtin;
use temponet_lab::analysis::Analysis;
use temponet_lab::gantt;
use temponet_lab::roster::Roster;
use temponet_sim::{Recorder, simulate};

fn warehouse_robot() -> TaskSet {
    Builtin::find("warehouse-robot").unwrap().load().unwrap().set
}

#[test]
fn every_scheduler_runs_it_or_says_why_not() {
    let (set, roster) = (warehouse_robot(), Roster::with(Model::built_in().unwrap()));
    let names = roster.names();
    let mut ran = 0;
    for name in &names {
        let mut scheduler = roster.build(name).unwrap_or_else(|error| panic!("{name}: {error}"));
        let mut recorder = Recorder::until(Time::NEVER);
        match simulate(&set, 1, Time::from_ms(500), &mut *scheduler, &mut recorder) {
            Ok(metrics) => {
                ran += 1;
                let kinds = [recorder.waits.is_empty(), recorder.holds.is_empty(), metrics.chains.is_empty()];
                assert_eq!(kinds, [false; 3], "{name}");
            }
            Err(error) => {
                let words = error.to_string();
                let is_said =
                    ["preemption", "critical sections", "different cores", "identical cores", "bound to some cores"];
                assert!(is_said.iter().any(|reason| words.contains(reason)), "{name}: {error}");
            }
        }
    }
    assert!(ran > names.len() / 2, "{ran} of {}", names.len());
}

#[test]
fn what_cannot_be_proved_is_said_so() {
    let analysis = Analysis::of(warehouse_robot(), None);
    assert_eq!(
        analysis.verdict(),
        "No scheduler can meet every deadline if every job takes its wcet. Jobs ask for 3.19 cores' worth of work, and \
         there are 2.80. The rest is not analysable: tasks share resources, and most tests are about independent tasks."
    );
    let chains: Vec<usize> = analysis.chains.iter().map(|(chain, _, _)| *chain).collect();
    assert_eq!(chains, [0, 1], "bounds that presuppose that deadlines are met");
}

#[test]
fn the_picture_shows_all_of_it() {
    let (set, until) = (warehouse_robot(), Time::from_ms(70));
    let mut recorder = Recorder::until(until);
    let mut edf = temponet_sched::build("edf").unwrap();
    simulate(&set, 1, until, &mut *edf, &mut recorder).unwrap();
    let picture = gantt::svg(&set, "edf", &recorder, until);
    for words in
        ["fast", "×0.4", "not preempted", "preempted every 1ms", "estimated, error 0.2", "comes after", "is read"]
    {
        assert!(picture.contains(words), "no {words}");
    }
    for words in ["bus", "map", "waits for it", "protocol: inheritance", "critical task"] {
        assert!(picture.contains(words), "no {words}");
    }
}

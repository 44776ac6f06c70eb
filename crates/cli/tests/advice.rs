//! Contract of advice: on one set every command names the same scheduler and who decides in it, and says what that rests
//! on.

use serde_json::Value;

use crate::folder::Folder;

/// Two levels of criticality that the shield cannot all guarantee, on one overloaded core with uncertain times.
const LEVELS: &str = r#"
[[task]]
name = "brake"
period = "20ms"
wcet = "9ms"
bcet = "2ms"
criticality = 2
[[task]]
name = "steer"
period = "30ms"
wcet = "14ms"
bcet = "3ms"
criticality = 1
[[task]]
name = "log"
period = "50ms"
wcet = "20ms"
bcet = "4ms"
"#;

/// Overload without critical tasks.
const OVERLOAD: &str = r#"
[[task]]
name = "long"
period = "100ms"
wcet = "60ms"
bcet = "20ms"
[[task]]
name = "a"
period = "70ms"
wcet = "30ms"
bcet = "5ms"
[[task]]
name = "b"
period = "50ms"
wcet = "30ms"
bcet = "5ms"
"#;

fn decider(report: &Value) -> &str {
    report["decider"]["name"].as_str().unwrap_or_else(|| panic!("nobody decides: {report}"))
}

fn of_temponet(comparison: &Value) -> &Value {
    comparison["results"].as_array().unwrap().iter().find(|row| row["scheduler"] == "temponet").unwrap()
}

#[test]
fn every_command_names_the_same_winner_and_the_same_decider() {
    let folder = Folder::new("advice");
    folder.write("levels.toml", LEVELS);
    folder.write("overload.toml", OVERLOAD);
    let candidates = "temponet,edf,srpt,mh-edf,muf,dios,look-ahead:caution=0:capacity=0.85";
    for set in ["levels.toml", "overload.toml", "robot", "gap-avionics", "standard-145"] {
        let tuned = folder.json(&["tune", set, "--json"]);
        let name = decider(&tuned);
        let compared = folder.json(&["compare", set, "--schedulers", candidates, "--no-oracle", "--json"]);
        assert_eq!(decider(of_temponet(&compared)), name, "{set}");
        assert_eq!(decider(&folder.json(&["explain", set, "--json"])), name, "{set}");
        let simulated = folder.json(&["simulate", set, "--scheduler", "temponet", "--horizon", "200ms", "--json"]);
        assert_eq!(decider(&simulated), name, "{set}");
        // The best scheduler is the one that tuning follows, behind its shield or bare, or it cannot be told from it.
        let advice = &compared["advice"];
        let best = advice["best"].as_str().unwrap();
        let is_level = |one: &str| advice["level_with"].as_array().unwrap().iter().any(|level| level == one);
        assert!(best == "temponet" || best == name || is_level("temponet"), "{set}: {advice}");
        if best == "temponet" {
            assert_eq!(decider(advice), name, "{set}");
        }
        let evidence = &advice["evidence"];
        assert!(evidence["runs"].as_u64() >= Some(1) && evidence["jobs"].as_u64() > Some(100), "{set}: {evidence}");
        let sentences = advice["sentences"].as_array().unwrap();
        let joined: Vec<&str> = sentences.iter().map(|sentence| sentence.as_str().unwrap()).collect();
        assert_eq!(compared["verdict"], joined.join(" "), "the verdict is the advice");
        // Whoever decides is named in text, too: in the table, and in the first line of an explanation.
        let (short, _) = name.split_once(':').unwrap_or((name, ""));
        let table = folder.stdout(&["compare", set, "--schedulers", "edf,temponet", "--no-oracle", "--runs", "2"]);
        assert!(table.contains(&format!("\ntemponet ({short}) ")), "{set}: {table}");
        let spoken = if name == "network" { "the network" } else { name };
        let explained = folder.stdout(&["explain", set]);
        assert!(explained.lines().next().unwrap().starts_with(&format!("In temponet, {spoken}")), "{explained}");
        assert!(folder.stdout(&["tune", set]).contains(&format!("{spoken} ")), "{set}");
    }
}

#[test]
fn deadlines_that_were_met_carry_their_evidence() {
    let folder = Folder::new("advice-evidence");
    // Overloaded at the wcet, but hardly ever in a run.
    let set = "[[task]]\nname = \"a\"\nperiod = 10\nwcet = 6\nbcet = 1\n\
        [[task]]\nname = \"b\"\nperiod = 40\nwcet = 18\nbcet = 2\n";
    folder.write("set.toml", set);
    let text = folder.stdout(&["compare", "set.toml", "--schedulers", "edf", "--horizon", "300ms", "--no-oracle"]);
    assert!(
        text.contains("edf meets every deadline in these 10 runs (370 jobs; at the wcet the set is overloaded)."),
        "{text}"
    );
    assert!(
        text.contains("leave open up to 1 miss in 124 jobs if each comes by itself, and a miss in up to 26%"),
        "{text}"
    );
    assert!(text.contains("≥99.19%"), "not ±0.00%: {text}");
    let proved =
        folder.stdout(&["compare", "gap-avionics", "--schedulers", "edf,rm", "--no-oracle", "--horizon", "2s"]);
    assert!(proved.contains("It is proved for"), "{proved}");
}

/// A mode that nobody sees coming ends a guarantee, and whoever speaks of the guarantee says so.
#[test]
fn a_mode_that_breaks_a_guarantee_is_said_beside_it() {
    let folder = Folder::new("advice-mode");
    let set = |mode: &str| {
        format!(
            "[[task]]\nname = \"a\"\nperiod = \"10ms\"\nwcet = \"4ms\"\ncriticality = 1\n[[task]]\nname = \"b\"\nperiod = \"14ms\"\nwcet = \"6ms\"\n{mode}"
        )
    };
    folder.write("plain.toml", &set(""));
    folder.write("rate.toml", &set("[[mode]]\nat = \"100ms\"\nrate = 1.6\n"));
    let table = |set: &str| {
        folder.stdout(&["compare", set, "--schedulers", "edf,shield:edf", "--no-oracle", "--horizon", "1s"])
    };
    let exception = "jobs that come or take more than their task says are not guaranteed";
    let (plain, rate) = (table("plain.toml"), table("rate.toml"));
    assert!(plain.contains("the shield guarantees every deadline") && !plain.contains(exception), "{plain}");
    assert!(rate.contains("the shield guarantees every deadline") && rate.contains(exception), "{rate}");
}

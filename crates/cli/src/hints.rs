//! Flags in messages. Libraries speak of the thing ("a horizon of 2s"); on the command line the flag that sets it
//! stands in its place ("--horizon 2s").

use std::borrow::Cow;

/// Words of libraries, and the same with the flag.
const FLAGS: [(&str, &str); 13] = [
    ("a horizon of ", "--horizon "),
    ("leave to use any core lets ", "--any-core lets "),
    ("another number of cores can be given", "--cores changes it"),
    ("a cost of decisions comes close", "--decision-cost comes close"),
    ("costs of switches and migrations come close", "--switch-cost and --migration-cost come close"),
    ("leave periods, wcets and bcet out", "leave --periods, --wcets and --bcet out"),
    ("a finer granularity", "a finer --granularity"),
    ("for an effort of ", "for an --oracle-budget of "),
    ("fewer jobs, a larger effort or no optimum", "fewer --jobs, a larger --oracle-budget or --no-oracle"),
    ("ten runs give intervals", "--runs 10 gives intervals"),
    ("needs a model: a file or random:SEED", "needs a model: --model FILE or --model random:SEED"),
    ("without admission control it is allowed", "--unthrottled, which turns admission control off, allows it"),
    ("the model to begin with, ", "--begin-with "),
];

/// Returns a message of a library with the flags of the command line.
pub fn with_flags(message: &str) -> Cow<'_, str> {
    FLAGS.iter().fold(Cow::Borrowed(message), |text, (words, flag)| match text.contains(words) {
        true => text.replace(words, flag).into(),
        false => text,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use temponet_lab::drawing::DrawError;
    use temponet_lab::sweep::SweepError;
    use temponet_sim::generate::GenerateError;
    use temponet_task::Time;

    #[test]
    fn messages_of_libraries_name_the_flags() {
        let messages = [
            (GenerateError::OwnTimes.to_string(), "--periods, --wcets and --bcet"),
            (DrawError::Rounding(Time(1), 1.0, 2.0).to_string(), "--granularity"),
            (SweepError::TooManyJobs.to_string(), "--jobs, a larger --oracle-budget or --no-oracle"),
        ];
        for (message, flag) in messages {
            assert!(!message.contains("--") && with_flags(&message).contains(flag), "{message}");
        }
        assert_eq!(with_flags("nothing of the kind"), "nothing of the kind");
    }

    /// A message that is reworded would silently lose its flag.
    #[test]
    fn libraries_say_what_is_replaced() {
        let crates = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let mut folders: Vec<_> =
            ["formats", "lab", "runtime", "school", "sim"].map(|name| crates.join(name).join("src")).into();
        let mut said = String::new();
        while let Some(folder) = folders.pop() {
            for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
                match path.is_dir() {
                    true => folders.push(path),
                    // Long messages go on in the next line of the source.
                    false => said += &std::fs::read_to_string(path).unwrap_or_default().replace("\\\n", ""),
                }
            }
        }
        let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
        for (words, _) in FLAGS {
            assert!(said.contains(words.trim()), "nothing says {words:?}");
        }
    }
}

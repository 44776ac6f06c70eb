//! Contract of the examples in README and documents: they show what the commands print. Blocks marked `console` are
//! run; `...` stands for omitted lines. `TRYCMD=overwrite cargo test -p temponet-cli --test suite shown` updates them.
//!
//! Figures of the network are those of its bfloat16 kernel. Where a processor has another one, a decision in thousands
//! may differ, so that these documents are compared with a tolerance: every word and every name as shown, a percentage
//! within [`POINTS`], any other number within [`SHARE`].

use std::process::Command;

use temponet_infer::Kernel;

/// Documents whose figures depend on no network.
const EXACT: [&str; 4] = ["docs/analysis.md", "docs/oracle.md", "docs/settings.md", "docs/start.md"];
/// Documents with figures of the network.
const OF_NETWORK: [&str; 2] = ["README.md", "docs/learned-scheduler.md"];

/// Tolerance of percentages, in points.
const POINTS: f64 = 0.5;
/// Tolerance of other numbers, as a share of the number shown; numbers below 1 may differ by this much.
const SHARE: f64 = 0.1;

#[test]
fn commands_print_what_the_documents_show() {
    let cases = trycmd::TestCases::new();
    EXACT.iter().for_each(|path| _ = cases.case(format!("../../{path}")));
    if Kernel::best() == Kernel::Amx {
        OF_NETWORK.iter().for_each(|path| _ = cases.case(format!("../../{path}")));
    }
}

#[test]
fn on_every_processor_commands_print_about_what_the_documents_show() {
    for path in OF_NETWORK {
        let text = std::fs::read_to_string(format!("{}/../../{path}", env!("CARGO_MANIFEST_DIR"))).unwrap();
        let blocks = text.split("```console\n").skip(1).map(|rest| rest.split("```").next().unwrap());
        for block in blocks {
            let (command, shown) = block.strip_prefix("$ temponet ").unwrap().split_once('\n').unwrap();
            let mut program = Command::new(env!("CARGO_BIN_EXE_temponet"));
            let output = program.args(command.split_whitespace()).output().unwrap();
            let printed = String::from_utf8(output.stdout).unwrap();
            if let Err(difference) = is_about(shown, &printed) {
                panic!("{path}: temponet {command}: {difference}");
            }
        }
    }
}

/// Compares what a document shows with what a command printed.
fn is_about(shown: &str, printed: &str) -> Result<(), String> {
    let mut lines = printed.lines().peekable();
    let mut shown = shown.trim_end().lines().peekable();
    while let Some(line) = shown.next() {
        if line == "..." {
            let Some(next) = shown.peek() else { return Ok(()) };
            while lines.next_if(|printed| !is_line_about(next, printed)).is_some() {}
            continue;
        }
        match lines.next() {
            Some(printed) if is_line_about(line, printed) => {}
            printed => return Err(format!("shown:\n{line}\nprinted:\n{}", printed.unwrap_or("nothing"))),
        }
    }
    lines.find(|line| !line.is_empty()).map_or(Ok(()), |line| Err(format!("not shown:\n{line}")))
}

fn is_line_about(shown: &str, printed: &str) -> bool {
    let (shown, printed) = (words(shown), words(printed));
    shown.len() == printed.len() && shown.iter().zip(&printed).all(|(shown, printed)| is_word_about(shown, printed))
}

/// Words of a line. The groups of a long number, which are a space apart, are one word; lines across a table are as
/// long as any.
fn words(line: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for (at, word) in line.split(' ').enumerate().filter(|(_, word)| !word.is_empty()) {
        let is_group = word.len() >= 3 && word.bytes().take(3).all(|byte| byte.is_ascii_digit());
        let follows =
            at > 0 && line.split(' ').nth(at - 1).is_some_and(|last| last.ends_with(|c: char| c.is_ascii_digit()));
        match words.last_mut().filter(|_| is_group && follows) {
            Some(number) => number.push_str(word),
            None => words.push(word.replace('─', "")),
        }
    }
    words
}

fn is_word_about(shown: &str, printed: &str) -> bool {
    let (Some((shown_number, rest)), Some((number, printed_rest))) = (number_in(shown), number_in(printed)) else {
        return shown == printed;
    };
    let most = if rest.1.starts_with('%') { POINTS } else { SHARE * f64::max(shown_number.abs(), 1.0) };
    rest == printed_rest && (shown_number - number).abs() <= most
}

/// The number in a word, and what stands before and after it.
fn number_in(word: &str) -> Option<(f64, (&str, &str))> {
    let is_of_number = |c: char| c.is_ascii_digit() || c == '.';
    let begin = word.find(|c: char| c.is_ascii_digit())?;
    // A name with a digit in it is a name.
    let is_name = word[..begin].contains(char::is_alphabetic);
    let end = word[begin..].find(|c| !is_of_number(c)).map_or(word.len(), |length| begin + length);
    let text = word[begin..end].trim_end_matches('.');
    let number = text.parse().ok().filter(|_| !is_name)?;
    Some((number, (&word[..begin], &word[begin + text.len()..])))
}

#[test]
fn the_tolerance_is_for_numbers_alone() {
    let shown = "temponet  100.00%  ≤99.87%  1 342  4.264ms\n...\nbest: temponet";
    assert_eq!(is_about(shown, "temponet  100.00%  ≤99.60%  1 299  4.3ms\nmore\nbest: temponet\n"), Ok(()));
    assert!(is_about(shown, "temponet  99.00%  ≤99.87%  1 342  4.264ms\nbest: temponet\n").is_err());
    assert!(is_about(shown, "temponet  100.00%  ≤99.87%  1 042  4.264ms\nbest: temponet\n").is_err());
    assert!(is_about(shown, "tuned  100.00%  ≤99.87%  1 342  4.264ms\nbest: temponet\n").is_err());
    assert!(is_about(shown, "temponet  100.00%  99.87%  1 342  4.264ms\nbest: temponet\n").is_err());
    assert!(is_about(shown, "temponet  100.00%  ≤99.87%  1 342  4.264ms\nbest: tuned\n").is_err());
    assert!(is_about("1 core", "1 core\nmore").is_err());
}

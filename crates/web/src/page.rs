//! Writes the page of the lab: `temponet-lab-page MODULE.wasm.gz WEB-FOLDER OUT.html`. `web/build` calls it.

use std::path::Path;
use std::process::ExitCode;

use temponet_lab::comparison::report::{SCHEDULES, SCRIPTS, STYLE};
use temponet_page::{Page, svg};

/// Scripts of the page, in the order in which they run, after those of a comparison.
const OWN_SCRIPTS: [&str; 11] = [
    "worker-client.js",
    "state.js",
    "task-table.js",
    "results.js",
    "moment.js",
    "what-if.js",
    "curve.js",
    "export.js",
    "files.js",
    "tours.js",
    "lab.js",
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [module, folder, out] = &arguments[..] else {
        eprintln!("usage: temponet-lab-page MODULE.wasm.gz WEB-FOLDER OUT.html");
        return ExitCode::from(2);
    };
    let written = page(Path::new(module), Path::new(folder))
        .and_then(|page| std::fs::write(out, page).map_err(|error| format!("{out}: {error}")));
    match written {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("error: {why}");
            ExitCode::from(2)
        }
    }
}

/// Returns the page, which holds the module and everything else.
fn page(module: &Path, folder: &Path) -> Result<String, String> {
    let read = |path: &Path| std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()));
    let text = |name: &str| {
        let path = folder.join(name);
        String::from_utf8(read(&path)?).map_err(|error| format!("{}: {error}", path.display()))
    };
    let body = text("lab.html")?.replace("{{SCHEDULES}}", SCHEDULES);
    let mut page = Page::new("TempoNet lab")
        .with_module()
        .style(STYLE)
        .style(&text("lab.css")?)
        .html(&body)
        .text("module", &base64(&read(module)?))
        .text("worker", &text("worker.js")?);
    page = page.script(&svg::script());
    for script in SCRIPTS {
        page = page.script(script);
    }
    for name in OWN_SCRIPTS {
        page = page.script(&text(name)?);
    }
    Ok(page.finish())
}

/// Returns bytes as Base64.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let bits = group.iter().enumerate().fold(0, |bits, (at, byte)| bits | u32::from(*byte) << (16 - 8 * at));
        for place in 0..4 {
            let digit = DIGITS[(bits >> (18 - 6 * place)) as usize & 63];
            text.push(if place <= group.len() { digit.into() } else { '=' });
        }
    }
    text
}

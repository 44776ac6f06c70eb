//! A million requests on real threads: `cargo run --release -p temponet-dispatch --example million`.

mod traffic;

fn main() {
    let start = std::time::Instant::now();
    let traffic::Report { stats, answers, memory } = traffic::run(1_000_000);
    println!("{answers} answers in {:.1} s", start.elapsed().as_secs_f64());
    println!("{stats:?}");
    if let Some([early, end]) = memory {
        println!("{:.1} MB resident after a fifth, {:.1} MB at the end", early as f64 / 1e6, end as f64 / 1e6);
    }
}

//! Names the shared library for the loader: programs need the version that their interface has.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let version = |part: &str| std::env::var(format!("CARGO_PKG_VERSION_{part}")).unwrap_or_default();
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "linux") {
        let name = format!("libtemponet.so.{}.{}", version("MAJOR"), version("MINOR"));
        println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,{name}");
    }
}

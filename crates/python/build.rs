//! Puts into the module how it was built, so that a report can say so.

use std::{env, process::Command};

fn output(program: &str, arguments: &[&str]) -> String {
    Command::new(program)
        .args(arguments)
        .output()
        .ok()
        .filter(|output| output.status.success())
        .map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned())
        .unwrap_or_default()
}

fn main() {
    let rustc = env::var("RUSTC").unwrap_or_else(|_| "rustc".into());
    println!("cargo:rustc-env=ASSAY_RUSTC={}", output(&rustc, &["--version"]));
    println!("cargo:rustc-env=ASSAY_COMMIT={}", output("git", &["rev-parse", "--short=12", "HEAD"]));
    println!("cargo:rustc-env=ASSAY_TARGET={}", env::var("TARGET").unwrap_or_default());
    println!("cargo:rustc-env=ASSAY_PROFILE={}", env::var("PROFILE").unwrap_or_default());
    println!("cargo:rerun-if-changed=build.rs");
    // The log of HEAD changes with every commit, which HEAD itself does not.
    println!("cargo:rerun-if-changed=../../.git/logs/HEAD");
}

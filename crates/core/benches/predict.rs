//! Predictions of one thread, by number of outputs.

fn main() {
    divan::main();
}

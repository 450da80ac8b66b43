//! The pass over all cells, loss by loss: 2,000 × 1,000 cells on one thread.

fn main() {
    divan::main();
}

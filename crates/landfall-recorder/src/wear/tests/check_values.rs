//! Pages written one at a time, all equally likely: the one load for which the amplification is known.

use super::*;

/// Pages in use.
const PAGES: u32 = 1 << 16;

/// The principal branch of the Lambert W function for x from -1/e to 0, by Halley's method.
fn lambert(x: f64) -> f64 {
    // The series around the branch point, where Newton's method alone would be slow.
    let p = (2.0 * (1.0 + std::f64::consts::E * x)).max(0.0).sqrt();
    let mut w = -1.0 + p - p * p / 3.0;
    for _ in 0..20 {
        let error = w * w.exp() - x;
        let slope = w.exp() * (w + 1.0);
        w -= error / (slope - (w + 2.0) * error / (2.0 * w + 2.0));
        if error.abs() < 1e-15 {
            break;
        }
    }
    w
}

/// The amplification of first in, first out with large flash: a / (a + W(-a exp(-a))), a = 1 / u (P.
/// Desnoyers, Analytic models of SSD write performance, ACM Transactions on Storage 10(2), 2014).
fn analytic(utilisation: f64) -> f64 {
    let a = 1.0 / utilisation;
    a / (a + lambert(-a * (-a).exp()))
}

/// What uniform random writes cost once they have gone on for long.
fn simulated(drive: &str) -> f64 {
    let drive: Drive = drive.parse().unwrap();
    let mut flash = Flash::new(&drive, u64::from(PAGES) * PAGE).unwrap();
    let mut random = fastrand::Rng::with_seed(7);
    let mut write = |flash: &mut Flash, pages: u32| {
        let before = flash.counts();
        for _ in 0..pages {
            flash.write(u64::from(random.u32(0..PAGES)) * PAGE, PAGE);
        }
        flash.counts() - before
    };
    flash.write(0, u64::from(PAGES) * PAGE);
    write(&mut flash, 4 * PAGES);
    let counts = write(&mut flash, 4 * PAGES);
    flash.check();
    counts.nand_bytes as f64 / counts.host_bytes as f64
}

#[test]
fn lambert_inverts() {
    for w in [-0.999, -0.9, -0.667, -0.3, -0.01] {
        assert!((lambert(w * f64::exp(w)) - w).abs() < 1e-9, "{w}");
    }
}

#[test]
fn amplification_is_as_expected() {
    for (utilisation, fifo, greedy) in [
        (0.70, 1.88, 1.84),
        (0.80, 2.69, 2.61),
        (0.90, 5.18, 4.84),
        (0.95, 10.2, 8.9),
    ] {
        let percent = utilisation * 100.0;
        let found = simulated(&format!("collector=fifo,utilisation={percent:.0}%"));
        let known = analytic(utilisation);
        println!("{utilisation}: fifo {found:.3} (analytic {known:.3}, expected {fifo})");
        assert!((found / known - 1.0).abs() < 0.01, "{found} {known}");
        assert!((found / fifo - 1.0).abs() < 0.015, "{found} {fifo}");
        let found = simulated(&format!("collector=greedy,utilisation={percent:.0}%"));
        println!("{utilisation}: greedy {found:.3} (expected {greedy})");
        assert!((found / greedy - 1.0).abs() < 0.015, "{found} {greedy}");
    }
}

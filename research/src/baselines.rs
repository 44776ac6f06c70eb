//! Figures that every learned scheduler is measured against on the same runs: those of EDF, of the best classical
//! scheduler and of the clairvoyant optimum.

use super::result_line::Line;
use temponet_lab::stats::percent;

/// One figure as achieved by EDF, by the best classical scheduler and by the clairvoyant optimum.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Baselines {
    /// Figure of EDF.
    pub edf: Option<f64>,
    /// Figure of the best classical scheduler.
    pub best: Option<f64>,
    /// Name of the best classical scheduler; none if it is not the same scheduler on all runs.
    pub best_name: Option<String>,
    /// Figure of the optimum, and whether it is exact. A figure that is not exact is a bound that no scheduler can
    /// exceed.
    pub optimum: Option<(f64, bool)>,
}

impl Baselines {
    /// Describes the baselines in a sentence about shares of jobs in time on the same `runs`, such as `sets`.
    pub fn sentence(&self, runs: &str) -> String {
        let shown = |share: Option<f64>| share.map_or(String::new(), percent);
        let name = self.best_name.as_ref().map(|name| format!(" as {name}")).unwrap_or_default();
        let optimum = match self.optimum {
            Some((optimum, true)) => format!(", the optimum {}", percent(optimum)),
            Some((bound, false)) => format!(", the optimum at most {}", percent(bound)),
            None => String::new(),
        };
        let (edf, best) = (shown(self.edf), shown(self.best));
        format!("on the same {runs} EDF meets {edf}, the best classical scheduler {best}{name}{optimum}")
    }
}

impl Line {
    /// Adds the baselines as references.
    pub fn beside_baselines(self, baselines: &Baselines) -> Line {
        let Baselines { edf, best, best_name, optimum } = baselines;
        let at_most = optimum.is_some_and(|(_, is_exact)| !is_exact).then_some("at most");
        self.beside("edf", None, *edf).beside("best classical", best_name.as_deref(), *best).beside(
            "optimum",
            at_most,
            optimum.map(|(optimum, _)| optimum),
        )
    }
}

//! Registration of everything that the paper's rivals add to the product.

use temponet_sched::catalog;
use temponet_train::register_method;

use crate::methods::{A2cSettings, HierarchicalSettings, PrioritySettings, RainbowSettings, SacSettings};
use crate::{networks, search};

/// Makes the rivals' methods and networks known to recipes and weights files, and the rivals that search to the catalog
/// of schedulers. Call it once, before a recipe is read or a scheduler is named; more calls change nothing.
pub fn register() {
    register_method::<A2cSettings>();
    register_method::<RainbowSettings>();
    register_method::<SacSettings>();
    register_method::<PrioritySettings>();
    register_method::<HierarchicalSettings>();
    networks::register();
    for method in &search::ALL {
        // The name is taken if this is not the first call, and by a program that has a scheduler of that name.
        let _ = catalog::register(method.entry());
    }
}

//! The forward pass of a feed-forward network. It is a baseline and small enough for plain loops over whole rows.

use std::sync::Arc;

use crate::network::Forward;
use crate::plain::{Embeddings, Linear, PlainHead, rectify};
use crate::{Rows, Weights};

/// Weights in the order in which the forward pass reads them.
struct Prepared {
    embeddings: Embeddings,
    /// First layer's map of each slot, and last that of the idle row.
    inputs: Vec<Linear>,
    inputs_bias: Vec<f32>,
    hidden: Vec<Linear>,
    heads: Vec<PlainHead>,
}

impl Prepared {
    fn new(weights: &Weights) -> Prepared {
        let shape = &weights.architecture;
        let slots = shape.slots.unwrap_or(0);
        let places = || (0..slots).map(|slot| slot.to_string()).chain(["idle".into()]);
        let input =
            |place: String| Linear::of(weights.tensor(&format!("inputs.{place}.weight")), &[], shape.feed_forward);
        Prepared {
            embeddings: Embeddings::new(weights),
            inputs: places().map(input).collect(),
            inputs_bias: weights.tensor("inputs.bias").to_vec(),
            hidden: (1..shape.layers).map(|layer| Linear::new(weights, &format!("hidden.{layer}"))).collect(),
            heads: places().map(|place| PlainHead::new(weights, &format!("head.{place}"))).collect(),
        }
    }
}

/// Feed-forward network that is ready to run, with its working memory.
pub(crate) struct FeedForward {
    prepared: Arc<Prepared>,
    row: Vec<f32>,
    units: Vec<f32>,
    layer: Vec<f32>,
    next: Vec<f32>,
}

impl FeedForward {
    /// Creates a network from weights whose architecture has slots.
    pub(crate) fn new(weights: &Weights) -> FeedForward {
        FeedForward::over(Arc::new(Prepared::new(weights)))
    }

    fn over(prepared: Arc<Prepared>) -> FeedForward {
        let (row, hidden) = (vec![0.0; prepared.embeddings.width], prepared.inputs_bias.clone());
        let units = vec![0.0; prepared.embeddings.units()];
        FeedForward { row, units, next: hidden.clone(), layer: hidden, prepared }
    }
}

impl Forward for FeedForward {
    fn forward(&mut self, rows: &Rows<'_>, q: &mut Vec<f32>) {
        let FeedForward { prepared, row, units, layer, next } = self;
        let (embeddings, slots) = (&prepared.embeddings, prepared.inputs.len() - 1);
        let features = embeddings.features;
        let slot = |place: usize| usize::from(embeddings.token(rows, place)[features - 1]).min(slots - 1);
        layer.copy_from_slice(&prepared.inputs_bias);
        embeddings.idle(rows, row);
        prepared.inputs[slots].add(row, layer);
        let jobs = rows.jobs.len() / features;
        for place in 0..jobs {
            embeddings.job(rows, place, units, row);
            prepared.inputs[slot(place)].add(row, layer);
        }
        rectify(layer);
        for hidden in &prepared.hidden {
            hidden.apply(layer, next);
            rectify(next);
            std::mem::swap(layer, next);
        }
        q.clear();
        q.push(prepared.heads[slots].of(layer));
        q.extend((0..jobs).map(|place| prepared.heads[slot(place)].of(layer)));
    }

    fn again(&self) -> Box<dyn Forward> {
        Box::new(FeedForward::over(self.prepared.clone()))
    }
}

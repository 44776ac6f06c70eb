//! Recurrent cells.

use crate::Real;

#[inline(always)]
pub fn lstm<R: Real>(h: usize, gates: &[R], cell: &[R], out: &mut [R]) {
    for ((gates, cell), out) in gates.chunks_exact(4 * h).zip(cell.chunks_exact(h)).zip(out.chunks_exact_mut(2 * h)) {
        for place in 0..h {
            let [input, forget, output] = [0, 1, 3].map(|gate| gates[gate * h + place].sigmoid());
            let state = forget * cell[place] + input * gates[2 * h + place].tanh();
            out[place] = output * state.tanh();
            out[h + place] = state;
        }
    }
}

#[inline(always)]
pub fn lstm_backward<R: Real>(h: usize, gates: &[R], cell: &[R], dy: &[R], dgates: &mut [R], dcell: &mut [R]) {
    let rows = gates.chunks_exact(4 * h).zip(cell.chunks_exact(h)).zip(dy.chunks_exact(2 * h));
    for (((gates, cell), dy), (dgates, dcell)) in
        rows.zip(dgates.chunks_exact_mut(4 * h).zip(dcell.chunks_exact_mut(h)))
    {
        for place in 0..h {
            let [input, forget, output] = [0, 1, 3].map(|gate| gates[gate * h + place].sigmoid());
            let new = gates[2 * h + place].tanh();
            let state = (forget * cell[place] + input * new).tanh();
            let dstate = dy[h + place] + dy[place] * output * (R::ONE - state * state);
            let slope = |gate: R| gate * (R::ONE - gate);
            dgates[place] += dstate * new * slope(input);
            dgates[h + place] += dstate * cell[place] * slope(forget);
            dgates[2 * h + place] += dstate * input * (R::ONE - new * new);
            dgates[3 * h + place] += dy[place] * state * slope(output);
            dcell[place] += dstate * forget;
        }
    }
}

#[inline(always)]
pub fn gru<R: Real>(h: usize, input: &[R], hidden: &[R], state: &[R], out: &mut [R]) {
    let rows = input.chunks_exact(3 * h).zip(hidden.chunks_exact(3 * h)).zip(state.chunks_exact(h));
    for (((input, hidden), state), out) in rows.zip(out.chunks_exact_mut(h)) {
        for place in 0..h {
            let [reset, update] = [0, 1].map(|gate| (input[gate * h + place] + hidden[gate * h + place]).sigmoid());
            let new = (input[2 * h + place] + reset * hidden[2 * h + place]).tanh();
            out[place] = new + update * (state[place] - new);
        }
    }
}

#[inline(always)]
pub fn gru_backward<R: Real>(
    h: usize,
    [input, hidden, state]: [&[R]; 3],
    dy: &[R],
    [dinput, dhidden, dstate]: [&mut [R]; 3],
) {
    for row in 0..state.len() / h {
        for place in 0..h {
            let at = |gate: usize| row * 3 * h + gate * h + place;
            let [reset, update] = [0, 1].map(|gate| (input[at(gate)] + hidden[at(gate)]).sigmoid());
            let new = (input[at(2)] + reset * hidden[at(2)]).tanh();
            let dy = dy[row * h + place];
            let dnew = dy * (R::ONE - update) * (R::ONE - new * new);
            let dreset = dnew * hidden[at(2)] * reset * (R::ONE - reset);
            let dupdate = dy * (state[row * h + place] - new) * update * (R::ONE - update);
            for (gate, gradient) in [(0, dreset), (1, dupdate)] {
                dinput[at(gate)] += gradient;
                dhidden[at(gate)] += gradient;
            }
            dinput[at(2)] += dnew;
            dhidden[at(2)] += dnew * reset;
            dstate[row * h + place] += dy * update;
        }
    }
}

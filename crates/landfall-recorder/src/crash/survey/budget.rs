//! How many states each epoch gets.

use fastrand::Rng;

/// Shares `limit` among takers that want so many each: nobody gets more than he wants, and whoever gets
/// less than that gets as much as all others who do, but for one.
pub(super) fn shares(limit: usize, wants: &[usize]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..wants.len()).collect();
    order.sort_by_key(|&taker| wants[taker]);
    let mut shares = vec![0; wants.len()];
    let mut left = limit;
    for (served, taker) in order.into_iter().enumerate() {
        let fair = left / (wants.len() - served);
        shares[taker] = wants[taker].min(fair);
        left -= shares[taker];
    }
    shares
}

/// `limit` of `count` places, or all: the first, the last, and in each of as many equal stretches between
/// them one that chance picks. If only one may be, the last, before which everything happened.
pub(super) fn spaced(limit: usize, count: usize, random: &mut Rng) -> Vec<usize> {
    if limit >= count {
        return (0..count).collect();
    }
    let Some(stretches) = limit.checked_sub(2) else {
        return (count - limit..count).collect();
    };
    let edge =
        |stretch: usize| 1 + (stretch as u128 * (count - 2) as u128 / stretches as u128) as usize;
    let between = (0..stretches).map(|stretch| random.usize(edge(stretch)..edge(stretch + 1)));
    let mut places = vec![0];
    places.extend(between);
    places.push(count - 1);
    places
}

/// `limit` of the choices, or all, in order.
pub(super) fn some<T>(limit: usize, choices: Vec<T>, random: &mut Rng) -> Vec<T> {
    if limit >= choices.len() {
        return choices;
    }
    random.choose_multiple(choices, limit)
}

#[cfg(test)]
mod tests {
    use super::{shares, spaced};
    use fastrand::Rng;
    use proptest::prelude::{any, prop, prop_assert, prop_assert_eq, proptest};

    #[test]
    fn small_wants_are_met_and_the_rest_is_shared_equally() {
        assert_eq!(shares(10, &[1, 100, 2, 100]), [1, 3, 2, 4]);
        assert_eq!(shares(10, &[1, 2, 3]), [1, 2, 3]);
        assert_eq!(shares(0, &[1, 2]), [0, 0]);
        assert_eq!(shares(9, &[]), [0; 0]);
        assert_eq!(shares(2, &[0, 5, 0, 5]), [0, 1, 0, 1]);
    }

    proptest! {
        #[test]
        fn a_limit_is_kept_and_used(
            limit in 0_usize..500, wants in prop::collection::vec(0_usize..200, 0..20)
        ) {
            let shares = shares(limit, &wants);
            let total: usize = wants.iter().sum();
            prop_assert_eq!(shares.iter().sum::<usize>(), limit.min(total));
            let short = shares.iter().zip(&wants).filter(|(share, want)| share < want);
            if let Some(least) = short.map(|(share, _)| *share).min() {
                prop_assert!(shares.iter().all(|&share| share <= least + 1));
            }
        }

        #[test]
        fn places_are_spaced_from_the_first_to_the_last(
            limit in 0_usize..50, count in 1_usize..200, seed in any::<u64>()
        ) {
            let places = spaced(limit, count, &mut Rng::with_seed(seed));
            prop_assert_eq!(places.len(), limit.min(count));
            prop_assert!(places.is_sorted_by(|a, b| a < b));
            prop_assert!(places.last().is_none_or(|&last| last == count - 1));
            if limit > 1 {
                prop_assert_eq!(places[0], 0);
            }
            if limit > 2 && limit < count {
                let stretch = (count - 2).div_ceil(limit - 2);
                prop_assert!(places.windows(2).all(|pair| pair[1] - pair[0] <= 2 * stretch));
            }
        }
    }
}

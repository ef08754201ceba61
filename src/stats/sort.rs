//! Sorting in place with little code.
//!
//! core's `sort_unstable` is faster and five times the size: 5 KiB of an appliance that
//! has 96. Heapsort (Williams, CACM 7(6), 1964) is in place and never worse than
//! n log n, which the lab's million rows need.

/// Sorts by `less`, a strict weak order; equal values end in any order.
pub fn sort_by<T: Copy>(values: &mut [T], less: &dyn Fn(&T, &T) -> bool) {
    for root in (0..values.len() / 2).rev() {
        sift_down(values, root, less);
    }
    for end in (1..values.len()).rev() {
        values.swap(0, end);
        sift_down(&mut values[..end], 0, less);
    }
}

/// Restores the heap below `root`: no child is greater than its parent.
fn sift_down<T: Copy>(heap: &mut [T], mut root: usize, less: &dyn Fn(&T, &T) -> bool) {
    while let Some(left) = heap.get(2 * root + 1) {
        let right = heap.get(2 * root + 2);
        let takes_right = right.is_some_and(|right| less(left, right));
        let child = 2 * root + 1 + usize::from(takes_right);
        if !less(&heap[root], &heap[child]) {
            break;
        }
        heap.swap(root, child);
        root = child;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    /// Against core's own sort, for every length up to 100 and few distinct values.
    #[test]
    fn sorts_like_core() {
        let mut state = 1u64;
        for len in 0..100 {
            let mut values: Vec<u64> = (0..len)
                .map(|_| {
                    state = state
                        .wrapping_mul(6_364_136_223_846_793_005)
                        .wrapping_add(1);
                    (state >> 33) % (len / 2 + 1)
                })
                .collect();
            let mut want = values.clone();
            want.sort_unstable();
            sort_by(&mut values, &|a, b| a < b);
            assert_eq!(values, want);
        }
    }
}

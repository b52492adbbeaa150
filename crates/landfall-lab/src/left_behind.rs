//! What a run could not clean up behind itself: it is said, and no reason to lose what was measured.

use crate::{Error, Notice, Results, Weight};

/// The warning that something could not be removed, if that is so. A request to stop stays one.
pub(crate) fn notice(closed: Result<(), Error>) -> Result<Option<Notice>, Error> {
    match closed {
        Ok(()) => Ok(None),
        Err(Error::Stopped) => Err(Error::Stopped),
        Err(error) => {
            let text = format!("Not all that was made for this run could be removed: {error}.");
            let notice = Notice::new(Results::LEFT_BEHIND, Weight::Warning, text)
                .because("The figures stand; 'landfall clean' removes what was left.");
            Ok(Some(notice))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_behind_is_a_warning() {
        assert_eq!(notice(Ok(())).unwrap(), None);
        let busy = Error::Refused("cannot unmount it".to_owned());
        let warning = notice(Err(busy)).unwrap().unwrap();
        assert_eq!(
            (warning.code.as_str(), warning.weight),
            (Results::LEFT_BEHIND, Weight::Warning)
        );
        assert!(
            warning.text.ends_with(": cannot unmount it."),
            "{warning:?}"
        );
    }

    #[test]
    fn a_request_to_stop_stays_one() {
        assert!(matches!(notice(Err(Error::Stopped)), Err(Error::Stopped)));
    }
}

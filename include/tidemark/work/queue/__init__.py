"""Operations on a work journal: insert, claim, update, sweep."""

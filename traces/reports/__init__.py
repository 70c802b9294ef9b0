"""What each kind of artefact says in a report; a kind's module is loaded when one is read, not before."""

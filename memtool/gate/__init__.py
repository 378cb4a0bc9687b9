"""What may enter: secrets and personal data are found and cut out before anything is kept."""

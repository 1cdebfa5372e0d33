"""What would change a plan, whatever was asked: the changed question is solved again."""

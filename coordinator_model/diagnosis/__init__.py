"""What the evidence means: causes, culprits, findings, advice and cost."""

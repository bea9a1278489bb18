"""Metrics as Prometheus reads them, by name and labels."""

from prometheus_client.parser import text_string_to_metric_families


class Metrics:
    """The samples of one scrape. A sample that is there twice is an error."""

    def __init__(self, families):
        self.kinds = {family.name: family.type for family in families}
        self.samples = {}
        for sample in (sample for family in families for sample in family.samples):
            key = sample.name, frozenset(sample.labels.items())
            assert key not in self.samples
            assert not sample.name.endswith("_created")
            self.samples[key] = sample.value

    def value(self, name, **labels):
        return self.samples[name, frozenset(labels.items())]

    def labelled(self, name, label):
        """Values of a metric by one label."""
        return {dict(labels)[label]: value for (sample, labels), value in self.samples.items() if sample == name}


def read_metrics(text):
    return Metrics(list(text_string_to_metric_families(text.decode())))

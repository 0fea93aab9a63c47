"""The services that CI starts for its jobs, such as a database, with their ports. Pure."""

import re
from collections.abc import Iterator

from atlas_retry.config.ci.expressions import text_of
from atlas_retry.config.project import ProjectFiles, dig, table

PORTS = {
    "postgres": 5432, "postgis": 5432, "pgvector": 5432, "mysql": 3306, "mariadb": 3306,
    "redis": 6379, "valkey": 6379, "mongo": 27017, "rabbitmq": 5672, "elasticsearch": 9200,
    "opensearch": 9200, "memcached": 11211, "minio": 9000, "kafka": 9092, "nats": 4222,
}  # fmt: skip
"""Port of a service by the name of its image."""


def services(project: ProjectFiles) -> Iterator[tuple[int, str]]:
    """Port on this machine and image of each service of GitHub's and GitLab's jobs."""
    for path in project.below(".github/workflows/*.y*ml"):
        for job in table(project.yaml(path), "jobs").values():
            for service in map(table, table(job, "services").values()):
                yield from _ports(text_of(service.get("image")), service.get("ports"))
    document = project.yaml(".gitlab-ci.yml")
    for job in (document, *document.values()):
        listed = table(job).get("services")
        for each in listed if isinstance(listed, list) else ():
            yield from _ports(text_of(dig(each, "name") or each), None)


def _ports(image: str, ports: object) -> Iterator[tuple[int, str]]:
    """The ports that are mapped, else the usual one of the image."""
    mapped = [text_of(port) for port in ports] if isinstance(ports, list) else []
    numbers = [int(match[0]) for match in map(re.compile(r"\d+").match, mapped) if match]
    usual = PORTS.get(re.sub(r"[:@].*", "", image).rpartition("/")[2])
    numbers += [usual] if usual and not numbers else []
    yield from ((number, image) for number in numbers)

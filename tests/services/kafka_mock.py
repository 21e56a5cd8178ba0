"""The process of `KafkaServer`: librdkafka's mock cluster, whose listeners are told by lines on standard input.

The library is the one inside `confluent_kafka`, so that nothing else need be installed. The mock speaks the protocol
over TCP, knows groups and offsets, holds messages in memory, and creates topics when they are first named. It cannot
create or delete topics by request, nor does it check logins.
"""

import ctypes
import sys
from importlib.metadata import files
from pathlib import Path

_PRODUCER = 0
_BROKER = 1
_REQUESTS = {"produce": 0, "init_producer_id": 22}
"""Their numbers in the protocol."""


def library() -> Path:
    """The librdkafka that the wheel of `confluent_kafka` holds."""
    found = [file for file in files("confluent-kafka") or () if file.name.startswith("librdkafka")]
    return Path(found[0].locate())


def main() -> None:
    """`down` and `up` close and open its port, `topic NAME N` creates one, `refuse REQUEST N CODE` answers the next N
    such requests with this error. It ends with its standard input."""
    kafka = ctypes.CDLL(str(library()))
    kafka.rd_kafka_new.restype = ctypes.c_void_p
    kafka.rd_kafka_mock_cluster_new.restype = ctypes.c_void_p
    kafka.rd_kafka_mock_cluster_bootstraps.restype = ctypes.c_char_p
    client = ctypes.c_void_p(kafka.rd_kafka_new(_PRODUCER, None, None, 0))
    cluster = ctypes.c_void_p(kafka.rd_kafka_mock_cluster_new(client, 1))
    kafka.rd_kafka_mock_set_controller_id(cluster, _BROKER)
    kafka.rd_kafka_mock_group_initial_rebalance_delay_ms(cluster, 0)
    _say(kafka.rd_kafka_mock_cluster_bootstraps(cluster).decode())
    for line in sys.stdin:
        match line.split():
            case ["down"]:
                kafka.rd_kafka_mock_broker_set_down(cluster, _BROKER)
            case ["up"]:
                kafka.rd_kafka_mock_broker_set_up(cluster, _BROKER)
            case ["topic", name, partitions]:
                kafka.rd_kafka_mock_topic_create(cluster, name.encode(), int(partitions), 1)
            case ["refuse", request, count, code]:
                codes = (ctypes.c_int * int(count))(*[int(code)] * int(count))
                kafka.rd_kafka_mock_push_request_errors_array(
                    cluster, ctypes.c_int16(_REQUESTS[request]), ctypes.c_size_t(int(count)), codes
                )
        _say("done")


def _say(words: str) -> None:
    sys.stdout.write(f"{words}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()

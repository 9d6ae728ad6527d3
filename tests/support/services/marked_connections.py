"""Connections with a password that may turn up nowhere, and a Kafka listener that asks for it (SASL, TLS)."""

import json
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import NameOID

from tidemark.embedded.ports import LOOPBACK
from tidemark.settings import Settings

MARKER = "hunter2-marker-7f3a"
"""A password that is given to the services' clients and may turn up nowhere."""


def secure_kafka(folder: Path, port: int) -> Path:
    """Give Kafka a second listener that wants TLS and the marked password; the certificate to trust."""
    folder.mkdir(parents=True)
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "kafka")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address(LOOPBACK))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
        .public_bytes(serialization.Encoding.PEM)
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    (folder / "certificate.pem").write_bytes(certificate)
    (folder / "keystore.pem").write_bytes(private + certificate)
    login = "org.apache.kafka.common.security.plain.PlainLoginModule"
    (folder / "further.properties").write_text(
        f"""
listeners=PLAINTEXT://127.0.0.1:@port@,CONTROLLER://127.0.0.1:@controller_port@,SECURED://127.0.0.1:{port}
advertised.listeners=PLAINTEXT://127.0.0.1:@port@,SECURED://127.0.0.1:{port}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SECURED:SASL_SSL
listener.name.secured.sasl.enabled.mechanisms=PLAIN
listener.name.secured.plain.sasl.jaas.config={login} required user_reader="{MARKER}";
listener.name.secured.ssl.keystore.type=PEM
listener.name.secured.ssl.keystore.location={folder / "keystore.pem"}
"""
    )
    return folder / "certificate.pem"


def further_connections(
    settings: Settings, master_port: int, secured_port: int, certificate: Path
) -> dict[str, str]:
    """Connections with the marked password, and two that start applications: in the cluster, and alone."""
    marked = {
        "bootstrap.servers": f"{LOOPBACK}:{secured_port}",
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "reader",
        "sasl.password": MARKER,
        "ssl.ca.location": str(certificate),
    }
    connections: dict[str, dict[str, Any]] = {
        "KAFKA_MARKED": {"conn_type": "kafka", "extra": marked},
        "KAFKA_MISTRUSTED": {
            "conn_type": "kafka",
            "extra": {**marked, "sasl.password": f"{MARKER}-mistyped"},
        },
        "CASSANDRA_MARKED": {
            "conn_type": "cassandra",
            "host": LOOPBACK,
            "port": settings.cassandra_port,
            "login": "writer",
            "password": MARKER,
        },
        "SPARK_CLUSTER": {
            "conn_type": "spark",
            "host": f"spark://{LOOPBACK}",
            "port": master_port,
        },
        "SPARK_LOCAL": {"conn_type": "spark", "host": "local[2]"},
    }
    return {f"AIRFLOW_CONN_{name}": json.dumps(value) for name, value in connections.items()}

"""The subject of a certificate in the format of Java's X500Principal."""

from datetime import UTC, datetime

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509 import NameAttribute, RelativeDistinguishedName
from cryptography.x509.name import _ASN1Type
from cryptography.x509.oid import NameOID

from sluice.broker.security.tls.distinguished_name import subject

KEY = ec.generate_private_key(ec.SECP256R1())
CN, O, OU = NameOID.COMMON_NAME, NameOID.ORGANIZATION_NAME, NameOID.ORGANIZATIONAL_UNIT_NAME  # noqa: E741  (as in names)


def certificate(*names: RelativeDistinguishedName) -> bytes:
    """Return a DER certificate with this subject, in the order given."""
    day = datetime(2026, 1, 1, tzinfo=UTC)
    name = x509.Name(names)
    builder = x509.CertificateBuilder(name, name, KEY.public_key(), 1, day, day.replace(year=2027))
    return builder.sign(KEY, hashes.SHA256()).public_bytes(Encoding.DER)


def one(oid: x509.ObjectIdentifier, value: str, type_: _ASN1Type | None = None) -> RelativeDistinguishedName:
    return RelativeDistinguishedName([NameAttribute(oid, value, type_)])


SUBJECTS = {
    "last name first": ([one(O, "Org"), one(CN, "alice")], "CN=alice,O=Org"),
    "keywords of RFC 2253": (
        [
            one(NameOID.COUNTRY_NAME, "SE"),
            one(NameOID.STATE_OR_PROVINCE_NAME, "S"),
            one(NameOID.LOCALITY_NAME, "L"),
            one(NameOID.STREET_ADDRESS, "Road 1"),
            one(NameOID.DOMAIN_COMPONENT, "org"),
            one(NameOID.USER_ID, "u"),
            one(OU, "unit"),
        ],
        "OU=unit,UID=u,DC=org,STREET=Road 1,L=L,ST=S,C=SE",
    ),
    "other attributes by number, with DER values": (
        [one(CN, "a"), one(NameOID.EMAIL_ADDRESS, "a@b.c", _ASN1Type.IA5String)],
        "1.2.840.113549.1.9.1=#16056140622e63,CN=a",
    ),
    "serial number by number": ([one(NameOID.SERIAL_NUMBER, "7", _ASN1Type.PrintableString)], "2.5.4.5=#130137"),
    "escaped separators": ([one(CN, 'a,b=c+d<e>f#g;h"i\\j')], 'CN=a\\,b\\=c\\+d\\<e\\>f\\#g\\;h\\"i\\\\j'),
    "escaped blanks at both ends": ([one(CN, "  a b ")], "CN=\\ \\ a b\\ "),
    "non-Latin script": ([one(CN, "Zoë 山")], "CN=Zoë 山"),
    "BMPString read as UTF-8": ([one(CN, "Zo", _ASN1Type.BMPString)], "CN=\\00Z\\00o"),
    "UniversalString as DER": ([one(CN, "Zo", _ASN1Type.UniversalString)], "CN=#1c080000005a0000006f"),
    "line break as a blank": ([one(CN, "\ra\r")], "CN=\\\ra\\\r"),
    "multi-valued name": ([RelativeDistinguishedName([NameAttribute(CN, "a"), NameAttribute(OU, "u")])], "CN=a+OU=u"),
    "length of two bytes": ([one(O, "x" * 200)], f"O={'x' * 200}"),
    "empty subject": ([], ""),
}


@pytest.mark.parametrize(("names", "expected"), SUBJECTS.values(), ids=SUBJECTS)
def test_subject_matches_java(names: list[RelativeDistinguishedName], expected: str) -> None:
    assert subject(certificate(*names)) == expected

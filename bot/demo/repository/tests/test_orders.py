import pytest


@pytest.fixture
def customer(client):
    return client.post("/customers", json={"name": "Ada"}).json()["id"]


def test_an_order_adds_up(client, customer):
    lines = [{"isbn": "978-0", "quantity": 2}, {"isbn": "978-1", "quantity": 1}]
    order = client.post("/orders", json={"customer": customer, "lines": lines})
    assert order.status_code == 201
    assert order.json()["total_cents"] == 2 * 1299 + 899


def test_stock_runs_out(client, customer):
    lines = [{"isbn": "978-2", "quantity": 1}]
    answer = client.post("/orders", json={"customer": customer, "lines": lines})
    assert answer.status_code == 409


def test_an_order_needs_lines(client, customer):
    assert client.post("/orders", json={"customer": customer, "lines": []}).status_code == 422


def test_an_unknown_customer_cannot_order(client):
    lines = [{"isbn": "978-0", "quantity": 1}]
    assert client.post("/orders", json={"customer": 77, "lines": lines}).status_code == 404

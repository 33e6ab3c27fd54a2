def test_a_customer_is_created_and_found(client):
    made = client.post("/customers", json={"name": "Ada"})
    assert made.status_code == 201
    assert client.get(f"/customers/{made.json()['id']}").json()["name"] == "Ada"


def test_a_customer_needs_a_name(client):
    assert client.post("/customers", json={}).status_code == 422


def test_an_unknown_customer_is_a_404(client):
    assert client.get("/customers/99").status_code == 404

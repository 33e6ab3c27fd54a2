def test_health_answers(client):
    assert client.get("/health").json() == {"status": "ok"}


def test_health_answers_however_often_it_is_asked(client):
    assert {client.get("/health").status_code for _ in range(70)} == {200}
